import type {Beat} from '@hearsay/core';

/** Pure: what others choose a node by and must not hear late. How many of several free slots are taken is not. */
export function standingOf({inventory, engines, flags}: Beat): string {
  const {draining, paused, isHot, batteryShare} = flags;
  const each = engines.map(({digest, readiness, slots, busy, queued, context}) =>
    [digest, readiness, slots, busy < slots, queued, context].join(' '),
  );
  return [inventory, draining, paused, isHot, batteryShare, ...each].join('\n');
}
