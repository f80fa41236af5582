import {spawn} from 'node:child_process';
import {join} from 'node:path';
import {createInterface} from 'node:readline';

/** A request on its way, with what has come of its answer so far. */
export interface Asked {
  /** The text so far. */
  heard(): string;
  readonly answer: Promise<AskedAnswer>;
}

export interface AskedAnswer {
  readonly status: number;
  readonly text: string;
  /** `x-hearsay-request`. */
  readonly request: string;
}

/** Posts a body and listens. The answer rejects when the connection breaks. */
export function ask(url: string, body: string, signal?: AbortSignal): Asked {
  let text = '';
  const listen = async (): Promise<AskedAnswer> => {
    const response = await fetch(url, {method: 'POST', body, ...(signal ? {signal} : {})});
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, {stream: true});
    return {status: response.status, text, request: response.headers.get('x-hearsay-request') ?? ''};
  };
  const answer = listen();
  answer.catch(() => undefined); // whoever awaits it learns of it; nobody else needs to
  return {heard: () => text, answer};
}

const asker = join(import.meta.dirname, '..', 'fixtures', 'ask-all.mjs');

interface Line {
  readonly index: number;
  readonly text?: string;
  readonly status?: number;
  readonly request?: string;
}

/** As `ask`, for many at once and from inside a network namespace: `within` is what the asker is started with. */
export function askAll(within: readonly string[], posts: readonly {url: string; body: string}[]): readonly Asked[] {
  const texts = posts.map(() => '');
  const answers = posts.map(() => Promise.withResolvers<AskedAnswer>());
  const [program, ...args] = [...within, process.execPath, asker];
  const child = spawn(program, args, {stdio: ['pipe', 'pipe', 'inherit']});
  createInterface({input: child.stdout}).on('line', written => {
    const {index, text = '', status, request = ''}: Line = JSON.parse(written);
    texts[index] += text;
    if (status !== undefined) answers[index]?.resolve({status, text: texts[index] ?? '', request});
  });
  // Not `exit`, which may come before the last lines have been read.
  child.once('close', () => answers.forEach(({reject}) => reject(new Error('the asker ended'))));
  child.stdin.end(JSON.stringify(posts));
  return answers.map(({promise}, index) => {
    promise.catch(() => undefined);
    return {heard: () => texts[index] ?? '', answer: promise};
  });
}
