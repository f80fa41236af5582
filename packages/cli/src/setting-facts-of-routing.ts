import type {SettingFacts} from './setting-facts.ts';
import type {SettingKey} from './settings.ts';

/** Of the choice of a node. */
export const routingFacts: Readonly<Record<Extract<SettingKey, `routing.${string}`>, SettingFacts>> = {
  'routing.spread': {
    variable: 'HEARSAY_SPREAD',
    flag: undefined,
    otherwise: '`auto`',
    example: '"auto"',
    about:
      '`auto`: a request goes where it costs the least time, and a second node loads a model when the measured wait for the first ' +
      'is longer than that takes (docs/routing.md). `off`: the node that has it loaded, whatever the wait.',
  },
  'routing.first_byte_min': {
    variable: 'HEARSAY_FIRST_BYTE_MIN',
    flag: undefined,
    otherwise: '`20s`',
    example: '"20s"',
    about:
      'How long a node may take at least until the first byte of its answer, before another is asked instead. It gets several times ' +
      'of what is expected of it; this is the least. Nobody is left while no other node could take the request.',
  },
  'routing.first_byte_max': {
    variable: 'HEARSAY_FIRST_BYTE_MAX',
    flag: undefined,
    otherwise: '`10m`',
    example: '"10m"',
    about: 'The most that a node gets until its first byte, whatever was expected of it.',
  },
  'routing.policy': {
    variable: 'HEARSAY_POLICY',
    flag: undefined,
    otherwise: '`auto`',
    example: '"prefer=spark"',
    about:
      'Where requests run for which nobody wishes anything else: `auto`, `prefer=NODE,…` or `pin=NODE,…`, and `;exclude=NODE,…`.',
  },
};
