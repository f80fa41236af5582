/** What is configured alike at every simulated node. */
export const sameForAll = {
  version: '0.0.0',
  workloads: [],
  policy: undefined,
  spread: 'auto',
  affinityKey: () => 'world',
  experienceFile: undefined,
  contextMax: 8192,
  firstByteMsMin: 20_000,
  firstByteMsMax: 600_000,
} as const;
