import {testFaults} from '../support/fault-table.ts';

testFaults({
  name: 'Anthropic',
  errorBody: /^\{"type":"error","error":\{"type":"\w+_error","message":".+"/u,
  endpoints: [
    {
      path: '/v1/messages',
      body: (prompt, stream) => ({stream, max_tokens: 9, messages: [{role: 'user', content: prompt}]}),
      stream: {
        errorEnd: /\n\nevent: error\ndata: \{"type":"error","error":\{"type":"\w+_error","message":".+"[^\n]*\}\n\n$/u,
        endMark: /event: message_stop/u,
      },
    },
    {
      path: '/v1/messages/count_tokens',
      body: prompt => ({messages: [{role: 'user', content: prompt}]}),
      estimates: true,
    },
  ],
});
