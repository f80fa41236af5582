import {remembered} from './remembered.ts';

/**
 * Pure: the URL as our routes know it. Clients put paths together from base URLs that people have typed: with the
 * scheme and host in front, with slashes too many, with `/v1` or `/api` in the base and again in the path (C28).
 */
export const plainPath: (url: string) => string = remembered(url => {
  const [path = '', ...query] = url.replace(/^https?:\/\/[^/?]*/iu, '').split('?');
  const plain = `/${path}`.replaceAll(/\/{2,}/gu, '/').replace(/^(?:\/(?:v1|api))+(?=\/(?:v1|api)(?:\/|$))/u, '');
  return [plain, ...query].join('?');
});
