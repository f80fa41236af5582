import {randomUUID} from 'node:crypto';
import test from 'ava';
import {chat, chatText, collect, counted} from '../support/chat.ts';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {busyAt, engines, models, nodes, status} from '../support/reports.ts';
import {shared} from '../support/shared.ts';
import {until} from '../support/until.ts';

const model = 'tiny-count-F16';

/** Two nodes, `one` and `two`, that both store the model and know it of each other. */
const pair = shared('a pair', async ends => {
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const folder = await modelFolder(ends, `${model}.gguf`, 'tiny-deep-F16.gguf');
  const [one, two] = await Promise.all([
    startDaemon(ends, {mesh, models: [folder], name: 'one'}),
    startDaemon(ends, {mesh, models: [folder], name: 'two'}),
  ]);
  for (const {url} of [one, two]) {
    await until('both know both', async () =>
      (await models(url)).every(({nodes: holders, hashed}) => holders.length === 2 && hashed === undefined),
    );
  }
  return [one, two] as const;
});

const ranAt = async (url: string, body: object = {}, headers: Readonly<Record<string, string>> = {}) => {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({model, max_tokens: 2, messages: [{role: 'user', content: 'count'}], ...body}),
  });
  const text = await response.text();
  return response.status === 200 ? response.headers.get('x-hearsay-node') : `${response.status} ${text}`;
};

test.serial('a node whose owner uses it takes nothing and gives its memory back at once', async t => {
  const folder = await modelFolder(t, `${model}.gguf`);
  const daemon = await startDaemon(t, {name: 'one', models: [folder]});
  t.is(await ranAt(daemon.url), 'one');
  t.is((await engines(daemon.url)).length, 1);
  await daemon.cli('pause');
  await until('the model is unloaded', async () => (await engines(daemon.url)).length === 0);
  t.regex(String(await ranAt(daemon.url)), /^503 .*one: its owner uses the machine/u);
  await daemon.cli('resume');
  t.is(await ranAt(daemon.url), 'one');
});

test.serial('S91, S93, S94, S95: the same request under every form of policy', async t => {
  const [one, two] = pair();
  for (const name of ['one', 'two']) {
    t.is(await ranAt(one.url, {}, {'x-hearsay-policy': `pin=${name}`}), name, 'header');
    t.is(await ranAt(one.url, {provider: {only: [name]}}), name, 'provider object');
    t.is(await ranAt(one.url, {model: `${model}@${name}`}), name, 'name');
    const other = name === 'one' ? 'two' : 'one';
    t.is(await ranAt(one.url, {provider: {ignore: [other]}}), name, 'excluded');
    t.is(
      await ranAt(one.url, {model: `${model}@${other}`}, {'x-hearsay-policy': `prefer=${name}`}),
      name,
      'header first',
    );
  }
  t.regex(
    String(await ranAt(one.url, {model: `${model}@three`})),
    /^503 .*pinned to three, and it cannot run this now \(no node of that name is here; those that are: (one, two|two, one)\)/u,
  );
  const missed = await fetch(`${one.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {'x-hearsay-policy': 'prefer=three'},
    body: JSON.stringify({model, max_tokens: 2, messages: []}),
  });
  t.regex(missed.headers.get('x-hearsay-reason') ?? '', /^preference not met/u, 'S92');
  await missed.text();

  const mistyped = await one.cli('policy', 'set', model, 'prefer=tow', 'exclude=two');
  t.regex(mistyped.stderr, /note: no node is called tow at the moment; there are one, two\n$/u);
  const set = await one.cli('policy', 'set', model, 'pin=two');
  t.is(set.code, 0);
  t.notRegex(set.stderr, /note/u);
  t.is(await ranAt(one.url, {}, {'x-hearsay-policy': 'pin=one'}), 'two', 'the owner wins');
  t.is(await ranAt(two.url, {}, {'x-hearsay-policy': 'pin=one'}), 'one', 'at this node only');
  t.regex((await one.cli('policy', 'ls')).stdout, new RegExp(`^FOR +POLICY\n${model.toLowerCase()} +pin=two\n$`, 'u'));
  t.regex((await one.cli('requests')).stdout, /two +1 .* finished/u);
  t.is((await one.cli('policy', 'rm', model)).code, 0);
  t.is(await ranAt(one.url, {}, {'x-hearsay-policy': 'pin=one'}), 'one');
  t.is((await one.cli('policy', 'rm', model)).code, 3);
  t.is((await one.cli('policy', 'set', model, 'fast')).code, 2);
  t.is((await chatText(one.url, {model, max_tokens: 3})).text, counted(3));
});

test.serial('a node that drains can hand over what only it has loaded, and says what nobody else can take', async t => {
  const [one, two] = pair();
  t.is(await ranAt(one.url, {}, {'x-hearsay-policy': 'pin=one'}), 'one');
  await two.cli('stop', model, '--node', 'two'); // where the test before has loaded it
  await until('only one has it', async () => (await engines(one.url)).every(({node}) => node === 'local'));

  const drained = await one.cli('drain', '--hand-over');
  t.is(drained.code, 0, drained.stderr);
  t.regex(drained.stderr, /takes no new requests.*\n.*tiny-count-F16 is loaded on two/u);
  t.true(
    (await engines(two.url)).some(({node, name, state}) => node === 'local' && name === model && state === 'ready'),
  );

  t.is((await two.cli('drain')).code, 0);
  t.is((await one.cli('undrain')).code, 0);
  t.is((await one.cli('stop', model, '--node', 'one')).code, 0);
  await until('only two has it', async () => (await engines(two.url)).every(({node}) => node === 'local'));
  t.is((await one.cli('drain')).code, 0);
  await until('two sees it', async () => /one .*draining/u.test((await two.cli('nodes')).stdout));
  const alone = await two.cli('drain', '--hand-over');
  t.is(alone.code, 0, alone.stderr);
  t.regex(alone.stderr, /tiny-count-F16 stays here alone: .*draining/u);
});

test.serial('S95: a node that drains gives new requests to the other, ends those it has, and stays so', async t => {
  const [one, two] = pair();
  for (const daemon of [one, two]) await daemon.cli('undrain'); // as the test before has left them
  for (const {url} of [one, two]) {
    await until('both serve', async () => (await nodes(url)).every(({state}) => state !== 'draining'));
  }
  const running = await chat(one.url, {model: 'tiny-deep-F16', max_tokens: 40, ignore_eos: true}, undefined);
  await running.events.next();
  const runs = (await busyAt(one.url)) > 0 ? one : two;
  const other = runs === one ? two : one;

  const drained = await runs.cli('drain');
  t.is(drained.code, 0, drained.stderr);
  t.is(await ranAt(runs.url), other.name);
  t.is(await ranAt(other.url), other.name);
  const rest = await collect(running.events);
  t.true(rest.done, 'the running answer came to its end');

  t.regex((await runs.cli('status')).stdout, /^state: +draining .*hearsay undrain/mu);
  await until('the other node sees it', async () => /draining/u.test((await other.cli('nodes')).stdout));
  t.regex((await runs.cli('ps')).stderr, new RegExp(`^${runs.name}: draining`, 'mu'));
  t.regex((await runs.cli('route', model)).stdout, new RegExp(`${runs.name} \\(this node\\): it is draining`, 'u'));

  t.is(await runs.stop(), 0);
  const again = await startDaemon(t, {name: runs.name, dataFolder: runs.dataFolder});
  t.is((await status(again.url)).state, 'draining', 'after a restart too');
  await again.cli('undrain');
  t.is((await status(again.url)).state, 'serving');
});
