import {never, workRequest, serve, isLinked, linkedPair, text, fails} from '../support/mesh-trial.ts';
import type {Check} from '../support/mesh-trial.ts';
import {until} from '../support/until.ts';

/** What every mesh must do with records and admissions. */
export function gossipContract(check: Check): void {
  check('a published record reaches all other nodes', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const b = await serve(await place.mesh('b'));
    const c = await serve(await place.mesh('c'));
    await until('all three meet', () => isLinked(a, b) && isLinked(a, c) && isLinked(b, c));
    const record = await a.mesh.sign(text('hello'));
    // Gossip reaches a newcomer only after both have subscribed; the exchange covers that
    a.newest = [{record, ageMs: 0}];
    await a.mesh.publish(record);
    for (const each of [b, c]) {
      await until('the record arrives', () => each.judged.length > 0);
      t.deepEqual(each.judged[0]?.record, record);
    }
  });

  check('a publish that nobody hears is no error, and the same record twice is harmless', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const record = await a.mesh.sign(text('hello'));
    await t.notThrowsAsync(a.mesh.publish(record));
    const b = await serve(await place.mesh('b'));
    await until('both meet', () => isLinked(a, b));
    await t.notThrowsAsync(a.mesh.publish(record));
    await t.notThrowsAsync(a.mesh.publish(record));
    await until('a later one arrives', async () => {
      const later = await a.mesh.sign(text(`later ${performance.now()}`));
      await a.mesh.publish(later);
      return b.judged.some(({record: {payload}}) => new TextDecoder().decode(payload).startsWith('later'));
    });
  });

  check('a node that comes late gets the newest records by exchange, with their age', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const record = await a.mesh.sign(text('old news'));
    a.newest = [{record, ageMs: 1234}];
    const late = await serve(await place.mesh('late'));
    await until('the exchange brings the record', () => late.judged.length > 0);
    t.deepEqual(late.judged[0]?.record, record);
    t.true((late.judged[0]?.ageMs ?? 0) >= 1234);
  });

  check('a record with a wrong signature never reaches the judge', async (t, place) => {
    const a = await serve(await place.mesh('a'));
    const record = await a.mesh.sign(text('true'));
    const good = await a.mesh.sign(text('good'));
    const forged = {...record, payload: text('forged')};
    a.newest = [forged, good].map(each => ({record: each, ageMs: 0}));
    const b = await serve(await place.mesh('b'));
    await until('the good record arrives', () => b.judged.length > 0);
    await until('gossip arrives', async () => {
      const next = await a.mesh.sign(text(`good ${performance.now()}`));
      await a.mesh.publish({...next, payload: text('forged')});
      await a.mesh.publish(next);
      return b.judged.length >= 3;
    });
    t.true(b.judged.every(({record: {payload}}) => new TextDecoder().decode(payload).startsWith('good')));
  });

  check('a node of another mesh gets nothing', async (t, place) => {
    const [a, b] = await linkedPair(place);
    const stranger = await serve(await place.mesh('stranger', 'other'));
    const record = await a.mesh.sign(text('ours'));
    a.newest = [{record, ageMs: 0}];
    await a.mesh.publish(record);
    await until('the record arrives at a member', () => b.judged.length > 0);
    await fails(t, stranger.mesh.worker(a.mesh.self).offer(workRequest(), never));
    await fails(t, stranger.mesh.inventory(a.mesh.self, never));
    await fails(t, a.mesh.worker(stranger.mesh.self).offer(workRequest(), never));
    t.deepEqual(stranger.judged, []);
    t.false([...stranger.links.values()].some(({admitted}) => admitted));
    t.false(a.links.get(stranger.mesh.self)?.admitted ?? false);
  });

  check('the inventory of a peer arrives as it was given', async (t, place) => {
    const [a, b] = await linkedPair(place);
    t.deepEqual(await a.mesh.inventory(b.mesh.self, never), text(`inventory of ${b.mesh.self}`));
  });

  check('links name the peers that are there, and no more after they left', async (t, place) => {
    const [a, b] = await linkedPair(place);
    t.deepEqual(
      a.mesh.links().map(({node, admitted, path}) => ({node, admitted, path})),
      [{node: b.mesh.self, admitted: true, path: 'direct'}],
    );
    await b.mesh[Symbol.asyncDispose]();
    await until('the link is reported gone', () => !a.links.has(b.mesh.self));
    t.deepEqual(a.mesh.links(), []);
  });
}
