/** What a figure should be, on the way through the node that has the engine and on the way over the mesh. */
interface Goal {
  readonly must: readonly [local: number, remote: number];
  readonly stretch: readonly [local: number, remote: number];
  readonly better: 'less' | 'more';
}

export interface Row {
  readonly figure: string;
  /** One for each way: direct, local and remote, perhaps those of another checkout, and a plain proxy. */
  readonly values: readonly (number | undefined)[];
  readonly digits: number;
  readonly goal?: Goal;
}

/** Pure: the table as text. A figure with a goal is marked `++` where it reaches the stretch, `+` the must, else `-`. */
export function table(ways: readonly string[], rows: readonly Row[]): string {
  const head = line('', ways, 'must', 'stretch');
  const body = rows.map(({figure, values, digits, goal}) => {
    const cells = values.map((value, way) => {
      if (value === undefined) return '';
      return `${value.toFixed(digits)} ${(goal ? mark(value, ways[way] ?? '', goal) : '').padEnd(2)}`;
    });
    return line(figure, cells, goal?.must.join(' / ') ?? '', goal?.stretch.join(' / ') ?? '');
  });
  return [head, ...body].join('\n');
}

/** Only the ways of hearsay have goals. */
function mark(value: number, way: string, {must, stretch, better}: Goal): string {
  if (!way.startsWith('local') && !way.startsWith('remote')) return '';
  const side = way.startsWith('local') ? 0 : 1;
  const reaches = (limit: number): boolean => (better === 'less' ? value <= limit : value >= limit);
  if (reaches(stretch[side])) return '++';
  return reaches(must[side]) ? '+' : '-';
}

function line(figure: string, cells: readonly string[], must: string, stretch: string): string {
  const columns = [figure.padEnd(62), ...cells.map(cell => cell.padStart(18)), must.padStart(16), stretch.padStart(16)];
  return columns.join('').trimEnd();
}
