import {testFaults} from '../support/fault-table.ts';

const doneMark = {
  errorEnd: /\n\ndata: \{"error":\{.*"message":".+"[^\n]*\}\n\n$/u,
  endMark: /data: \[DONE\]/u,
};
/** llama-server's own streams end with an event that says so. */
const stopMark = {errorEnd: doneMark.errorEnd, endMark: /"stop":true/u};

testFaults({
  name: 'OpenAI',
  errorBody: /^\{"error":\{.*"message":".+","type":"\w+".*"code":"\w+"/u,
  endpoints: [
    {
      path: '/v1/chat/completions',
      body: (prompt, stream) => ({stream, messages: [{role: 'user', content: prompt}]}),
      stream: doneMark,
    },
    {path: '/v1/completions', body: (prompt, stream) => ({stream, prompt}), stream: doneMark},
    {
      path: '/v1/responses',
      body: (prompt, stream) => ({stream, input: prompt}),
      stream: {
        errorEnd:
          /\n\nevent: response\.failed\ndata: (?=.*"status":"failed")\{.*"error":\{"code":"\w+","message":".+"[^\n]*\}\n\n$/u,
        endMark: /event: response\.completed/u,
      },
    },
    {path: '/v1/responses/input_tokens', body: prompt => ({input: prompt})},
    {
      path: '/v1/chat/completions/input_tokens',
      body: prompt => ({messages: [{role: 'user', content: prompt}]}),
    },
    {path: '/v1/embeddings', model: 'tiny-embed-F16', body: prompt => ({input: prompt})},
    {path: '/v1/rerank', model: 'tiny-rerank-F16', body: prompt => ({query: prompt, documents: ['a', 'b']})},
    {path: '/completion', body: (prompt, stream) => ({stream, prompt}), stream: stopMark},
    {
      path: '/infill',
      body: (prompt, stream) => ({stream, input_prefix: prompt, input_suffix: ''}),
      stream: stopMark,
    },
    {path: '/tokenize', body: prompt => ({content: prompt})},
    {path: '/apply-template', body: prompt => ({messages: [{role: 'user', content: prompt}]})},
  ],
});
