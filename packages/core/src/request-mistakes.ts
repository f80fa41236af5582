/** What llama-server says with a 500 although the request is wrong, and would be for every other engine too. */
const mistakes = [
  /^Failed to parse (?:messages|tools|tool call arguments as JSON): /u,
  /^"\w+" elements must be a string, a list of tokens/u,
];

/** Pure: whether the message of a 500 of llama-server is about what the client sent. */
export function isRequestMistake(message: string): boolean {
  return mistakes.some(mistake => mistake.test(message));
}
