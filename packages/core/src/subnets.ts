/** IP addresses and subnets as numbers: the one place that knows which ranges are private. */

/** A parsed address: IPv4 has 32 bits, IPv6 has 128. IPv4 that is mapped into IPv6 counts as IPv4. */
interface IpAddress {
  readonly width: 32 | 128;
  readonly bits: bigint;
}

/** Ranges that cannot come from the public internet: RFC 1918, shared (Tailscale), link-local, unique local. */
const privateRanges = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  'fe80::/10',
  'fc00::/7',
];
const loopbackRanges = ['127.0.0.0/8', '::1/128'];
const linkLocalRange = 'fe80::/10';

/** True for addresses that cannot come from the public internet; loopback is not among them. */
export function isPrivateAddress(address: string): boolean {
  return privateRanges.some(range => isInSubnet(address, range));
}

/** True when the whole subnet is private. */
export function isPrivateSubnet(subnet: string): boolean {
  const inner = parseSubnet(subnet);
  const isInside = (range: string): boolean => isInSubnet(subnet.split('/')[0] ?? '', range);
  return privateRanges.some(range => isInside(range) && (inner?.prefix ?? 0) >= (parseSubnet(range)?.prefix ?? 0));
}

/** `127.0.0.1` and its like. */
export function isLoopbackAddress(address: string): boolean {
  return loopbackRanges.some(range => isInSubnet(address, range));
}

/** IPv6 addresses that mean something on one interface only. */
export function isLinkLocal6(address: string): boolean {
  return isInSubnet(address, linkLocalRange);
}

/** False when either is not what it should be. A zone (`%eth0`) is no part of the address. */
export function isInSubnet(address: string, subnet: string): boolean {
  const range = parseSubnet(subnet);
  const ip = parseIp(address);
  if (range === undefined || ip?.width !== range.width) return false;
  const shift = BigInt(range.width - range.prefix);
  return ip.bits >> shift === range.bits >> shift;
}

/** `192.168.1.7/24` as `192.168.1.0/24`; an address without a prefix is a subnet of one. Undefined for other text. */
export function normalSubnet(text: string): string | undefined {
  const range = parseSubnet(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`);
  if (range === undefined) return undefined;
  const shift = BigInt(range.width - range.prefix);
  return `${formatIp({width: range.width, bits: (range.bits >> shift) << shift})}/${range.prefix}`;
}

function parseSubnet(text: string): (IpAddress & {readonly prefix: number}) | undefined {
  const [address = '', digits = ''] = text.split('/');
  const ip = parseIp(address);
  const prefix = /^\d{1,3}$/u.test(digits) ? Number(digits) : Infinity;
  return ip === undefined || prefix > ip.width ? undefined : {...ip, prefix};
}

function parseIp(text: string): IpAddress | undefined {
  const bare = text.replace(/%.*$/u, '');
  const v4 = parseIp4(bare);
  if (v4 !== undefined) return {width: 32, bits: v4};
  const v6 = parseIp6(bare);
  if (v6 === undefined) return undefined;
  return v6 >> 32n === 0xff_ffn ? {width: 32, bits: v6 & 0xff_ff_ff_ffn} : {width: 128, bits: v6};
}

function parseIp4(text: string): bigint | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || parts.some(part => !/^\d{1,3}$/u.test(part) || Number(part) > 255)) return undefined;
  return parts.reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

function parseIp6(text: string): bigint | undefined {
  const dotted = /^(?<head>.*:)(?<tail>[\d.]+)$/u.exec(text)?.groups;
  const tail = dotted?.['tail']?.includes('.') === true ? parseIp4(dotted['tail']) : undefined;
  const plain =
    tail === undefined
      ? text
      : `${dotted?.['head'] ?? ''}${(tail >> 16n).toString(16)}:${(tail & 0xffffn).toString(16)}`;
  const halves = plain.split('::');
  if (halves.length > 2 || !plain.includes(':')) return undefined;
  const [left = [], right = []] = halves.map(half => (half === '' ? [] : half.split(':')));
  const groups = [...left, ...right];
  if (groups.some(group => !/^[\da-f]{1,4}$/iu.test(group))) return undefined;
  const missing = 8 - groups.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const all = [...left, ...Array.from({length: missing}, () => '0'), ...right];
  return all.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

function formatIp({width, bits}: IpAddress): string {
  if (width === 32) return [24n, 16n, 8n, 0n].map(shift => String((bits >> shift) & 0xffn)).join('.');
  const groups = Array.from({length: 8}, (_, index) => ((bits >> BigInt(112 - 16 * index)) & 0xffffn).toString(16));
  const text = groups.join(':');
  const runs = [...text.matchAll(/(?<![^:])0(?::0)+(?![^:])/gu)].toSorted(([a], [b]) => b.length - a.length);
  const [longest] = runs;
  if (longest === undefined) return text;
  const [before, after] = [text.slice(0, longest.index), text.slice(longest.index + longest[0].length)];
  return `${before.replace(/:$/u, '')}::${after.replace(/^:/u, '')}`;
}
