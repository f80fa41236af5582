/** Where text goes: data to stdout, everything else to stderr. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly error: (text: string) => void;
  /** A person looks at stderr, so that lines may be rewritten. */
  readonly isInteractive: boolean;
}

export function processTerminal(): Terminal {
  return {
    out: text => void process.stdout.write(text),
    error: text => void process.stderr.write(text),
    isInteractive: process.stderr.isTTY,
  };
}
