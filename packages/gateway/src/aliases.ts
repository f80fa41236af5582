/** Names that the owner gives to models: `claude-haiku-*` may mean whatever this mesh has. */
export type Aliases = Readonly<Record<string, string>>;

/**
 * Pure: the model that a name stands for; the name itself when it is no alias. An alias that ends with `*` stands for
 * every name that begins so; the longest one decides. `*` alone is no alias but a last resort, see `catchAll`. Compared
 * without case, as all names of models.
 */
export function resolveAlias(asked: string, aliases: Aliases): string {
  const wanted = asked.trim().toLowerCase();
  const fitting = Object.entries(aliases).filter(([alias]) => alias !== '*' && fits(wanted, alias.toLowerCase()));
  const [best] = fitting.toSorted(([a], [b]) => weight(b) - weight(a));
  return best?.[1] ?? asked;
}

/** Pure: the model for names that nobody knows; undefined: such a name is an error. */
export function catchAll(aliases: Aliases): string | undefined {
  return Object.hasOwn(aliases, '*') ? aliases['*'] : undefined;
}

/** Pure: the aliases that name one model, as a list shows them: a pattern is no name. */
export function namedAliases(aliases: Aliases): readonly (readonly [alias: string, model: string])[] {
  return Object.entries(aliases).filter(([alias]) => !alias.endsWith('*'));
}

function fits(wanted: string, alias: string): boolean {
  return alias.endsWith('*') ? wanted.startsWith(alias.slice(0, -1)) : wanted === alias;
}

/** An exact alias before every pattern. */
function weight(alias: string): number {
  return alias.endsWith('*') ? alias.length : Infinity;
}
