import {randomUUID} from 'node:crypto';
import {startDaemon} from '../support/daemon.ts';
import {modelFolder} from '../support/models.ts';
import {alive, curl, meetMsMax, netTest} from '../support/net-trial.ts';
import {switchedLan} from '../support/network-namespaces.ts';
import {timed, until} from '../support/until.ts';

/** A list that waited for peers would wait for them as long; the program that asks takes a part of it. */
const listMsMax = 3000;

netTest('S58, R34: with a peer in a black hole every list is there at once, and soon without that peer', async t => {
  t.timeout(300_000);
  const lan = switchedLan(t, 3);
  const mesh = `test-${randomUUID().slice(0, 8)}`;
  const files = ['', 'tiny-count-F16', 'tiny-other-Q4_0'];
  const [asked] = await Promise.all(
    files.map(async (file, index) =>
      startDaemon(t, {
        name: `h${index}`,
        mesh,
        meshPort: 4328,
        models: file === '' ? [] : [await modelFolder(t, `${file}.gguf`)],
        within: lan.within(index),
      }),
    ),
  );
  if (!asked) return t.fail();
  await until('all know all', async () => (await alive(asked)) === 'h0 h1 h2', meetMsMax);
  const isListed = async (model: string): Promise<boolean> => (await curl(asked, '/v1/models')).includes(model);
  for (const model of files.slice(1)) await until(`${model} is listed`, async () => isListed(model), meetMsMax);
  lan.lose(2, 'sent');
  lan.lose(2, 'received');
  const isGone = async (): Promise<boolean> => {
    let seen = '';
    for (const path of ['/v1/models', '/api/tags', '/api/ps', '/hearsay/v1/nodes', '/hearsay/v1/models']) {
      const {value, ms} = await timed(async () => curl(asked, path));
      t.true(ms < listMsMax, `${path}: ${ms} ms`);
      if (path !== '/api/ps' && path !== '/hearsay/v1/nodes') t.regex(value, /tiny-count/u, path);
      seen += value;
    }
    return !seen.includes('tiny-other');
  };
  await isGone(); // however little has been noticed so far
  await until('it is out', isGone, meetMsMax);
  t.is(await alive(asked), 'h0 h1');
});
