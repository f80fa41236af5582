import type {InstallProgress} from '@hearsay/engine';
import {formatProgress} from '@hearsay/engine';
import type {Terminal} from './terminal.ts';

/** How many lines one long step may take where lines cannot be rewritten. */
const linesPerStep = 10;

export interface ProgressLines extends Disposable {
  readonly show: (progress: InstallProgress) => void;
}

/**
 * Shows an install on stderr: one line that is rewritten where a person looks, else a line for every step and for about
 * every tenth part of a long one.
 */
export function progressLines(terminal: Terminal): ProgressLines {
  let shown: {readonly step: string; readonly part: number} | undefined;
  return {
    show(progress) {
      const part = progress.total > linesPerStep ? Math.floor((progress.done / progress.total) * linesPerStep) : 0;
      if (terminal.isInteractive) terminal.error(`\r\u001B[K${formatProgress(progress)}`);
      else if (shown?.step !== progress.step || shown.part !== part) terminal.error(`${formatProgress(progress)}\n`);
      shown = {step: progress.step, part};
    },
    [Symbol.dispose]() {
      if (terminal.isInteractive && shown !== undefined) terminal.error('\r\u001B[K');
    },
  };
}
