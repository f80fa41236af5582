import {prepareTests} from './prepare-tests.ts';
import {chat, chatText, collect, deltaOf} from '../test/support/chat.ts';
import {startDaemon} from '../test/support/daemon.ts';
import {modelFolder} from '../test/support/models.ts';
import {aliveNames, engines, models} from '../test/support/reports.ts';
import {until} from '../test/support/until.ts';

/**
 * `npm run demo`: three nodes on this machine, told nothing of each other, with a real llama-server each. Shows how
 * they find each other, how a request finds its model, and what happens when the node that serves it is killed.
 */

const startedMs = performance.now();
await using cleanup = new AsyncDisposableStack();
const teardown = {teardown: (run: () => unknown): void => cleanup.defer(async () => void (await run()))};
Object.assign(process.env, await prepareTests());

say('Three nodes start: their own data, their own models, no list of peers, no configuration.');
const mesh = `demo-${process.pid}`;
const start = async (name: string, ...files: readonly string[]) =>
  startDaemon(teardown, {
    name,
    mesh,
    demo: name === 'laptop',
    models: [await modelFolder(teardown, ...files)],
    variables: {HEARSAY_THREADS: '1'},
  });
const [laptop, minipc, bigbox] = await Promise.all([
  start('laptop'),
  start('minipc', 'tiny-deep-F16.gguf'),
  start('bigbox', 'tiny-deep-F16.gguf', 'tiny-count-F16.gguf'),
]);
await until('they know each other', async () => (await aliveNames(laptop.url)).length === 3);
await until('they know the models', async () => (await models(laptop.url)).length === 2);
await show(laptop, 'nodes');
await show(laptop, 'models');

say('The laptop has none of these models. It is asked all the same, and bigbox answers through it:');
const {text, headers} = await chatText(laptop.url, {model: 'tiny-count-F16', max_tokens: 12});
line(`tiny-count-F16 says:${text}`);
line(`ran on ${headers.get('x-hearsay-node')}, because: ${headers.get('x-hearsay-reason')}`);

say('A slow model that two nodes have. Its node is killed (kill -9) while the words stream:');
const slow = {model: 'tiny-deep-F16', max_tokens: 2000, ignore_eos: true};
const {headers: head, events} = await chat(laptop.url, slow);
let words = '';
for (let pieces = 0; pieces < 6; pieces += 1) words += deltaOf((await events.next()).value);
const serving = [minipc, bigbox].find(({name}) => name === head.get('x-hearsay-node')) ?? bigbox;
await show(laptop, 'ps');
serving.kill('SIGKILL');
const rest = await collect(events);
line(`it said:${(words + rest.text).slice(0, 40)} …`);
line(`and then the client got an error, not a second answer: ${rest.error?.message}`);

say('The same request again, to the same laptop: the other node has the same file (same sha256), so it answers.');
const again = await chatText(laptop.url, {...slow, max_tokens: 10});
line(`tiny-deep-F16 says:${again.text}`);
line(`ran on ${again.headers.get('x-hearsay-node')}`);
await until('it is gossiped', async () => (await engines(laptop.url)).length > 0);
await show(laptop, 'ps');
await show(laptop, 'nodes');

say(
  `That was all, in ${((performance.now() - startedMs) / 1000).toFixed(0)} s. Try it for real: npm start, here and on another machine.`,
);

async function show(from: typeof laptop, ...command: readonly string[]): Promise<void> {
  const {stdout, stderr} = await from.cli(...command);
  console.log(`\n  ${from.name}$ hearsay ${command.join(' ')}`);
  for (const row of `${stdout}${stderr}`.trimEnd().split('\n')) console.log(`  ${row}`);
}

function say(sentence: string): void {
  console.log(`\n${sentence}`);
}

function line(sentence: string): void {
  console.log(`  ${sentence}`);
}
