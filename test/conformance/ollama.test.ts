import {testFaults} from '../support/fault-table.ts';

const lines = {errorEnd: /\n\{"error":".+"\}\n$/u, endMark: /"done":true/u};

testFaults({
  name: 'Ollama',
  errorBody: /^\{"error":".+"\}$/u,
  endpoints: [
    {
      path: '/api/chat',
      body: (prompt, stream) => ({stream, messages: [{role: 'user', content: prompt}]}),
      stream: lines,
    },
    {path: '/api/generate', body: (prompt, stream) => ({stream, prompt}), stream: lines},
    {path: '/api/generate', body: (prompt, stream) => ({stream, prompt, raw: true}), stream: lines},
    {path: '/api/generate', body: (prompt, stream) => ({stream, prompt, suffix: 'end'}), stream: lines},
    {path: '/api/embed', model: 'tiny-embed-F16', body: prompt => ({input: prompt})},
    {path: '/api/embeddings', model: 'tiny-embed-F16', body: prompt => ({prompt})},
  ],
});
