import {execFileSync} from 'node:child_process';
import type {StdioOptions} from 'node:child_process';
import {userInfo} from 'node:os';
import type {ExecutionContext} from 'ava';

/** Hosts on one switch, each in a network namespace of its own, without a default route. */
export interface SwitchedLan {
  /** Wraps a command so that it runs on host `index`, from 0. */
  within(index: number): readonly string[];
  /** `10.77.x.y` of the host. */
  address(index: number): string;
  /** Pulls the cable of the host, or plugs it in again. */
  cable(index: number, state: 'up' | 'down'): void;
  /** Runs `ip` on the host. */
  ip(index: number, ...args: readonly string[]): void;
  /** The link-local IPv6 address of the host, without a zone. */
  linkLocal(index: number): string;
  /** A firewall on the host that lets nobody in at that port of TCP. */
  closePort(index: number, port: number): void;
  /** Lets no multicast of IPv4 leave or reach the host. */
  muteMulticast(index: number): void;
  /** Lets packets of the host vanish on their way out, on their way in, or to and from some addresses; undone. */
  lose(index: number, which: 'sent' | 'received' | {readonly peers: readonly number[]}): () => void;
}

/** Why namespaces cannot be used here; undefined when they can. */
export function whyNoNamespaces(): string | undefined {
  if (userInfo().uid !== 0) return 'network namespaces need root';
  try {
    run('netns', 'list');
    return undefined;
  } catch {
    return 'network namespaces need the program ip (package iproute2)';
  }
}

/** Builds the LAN; it is taken down with the test. */
export function switchedLan(t: Pick<ExecutionContext, 'teardown'>, hosts: number): SwitchedLan {
  const tag = `hs${process.pid}${lans}`;
  const subnet = `10.77.${lans + 1}`;
  lans += 1;
  const bridge = `${tag}sw`;
  const name = (index: number): string => `${tag}h${index}`;
  const plug = (index: number): string => `p${index}`;
  t.teardown(() => {
    for (const namespace of [bridge, ...Array.from({length: hosts}, (_, index) => name(index))]) {
      removeNamespace(namespace);
    }
  });
  run('netns', 'add', bridge);
  run('-n', bridge, 'link', 'add', 'br0', 'type', 'bridge', 'mcast_snooping', '0');
  run('-n', bridge, 'link', 'set', 'br0', 'up');
  for (let index = 0; index < hosts; index += 1) {
    plugIn(bridge, name(index), {device: 'eth0', port: plug(index), address: `${subnet}.${index + 1}/24`});
  }
  const address = (index: number): string => `${subnet}.${index + 1}`;
  return {
    within: index => ['ip', 'netns', 'exec', name(index)],
    address,
    ip: (index, ...args) => run('-n', name(index), ...args),
    linkLocal(index) {
      const shown = execFileSync('ip', ['-n', name(index), '-6', '-o', 'addr', 'show', 'dev', 'eth0'], {
        encoding: 'utf8',
      });
      return /inet6 (?<address>fe80:[^/]+)\//u.exec(shown)?.groups?.['address'] ?? '';
    },
    closePort(index, port) {
      const rule = `iifname "eth0" tcp dport ${port} drop`;
      nft(name(index), `table inet wall { chain into { type filter hook input priority 0; ${rule}; }; }`);
    },
    muteMulticast(index) {
      const out = 'chain out { type filter hook output priority 0; ip daddr 224.0.0.0/4 drop; };';
      const into = 'chain into { type filter hook input priority 0; ip daddr 224.0.0.0/4 drop; };';
      nft(name(index), `table ip muted { ${out} ${into} }`);
    },
    lose(index, which) {
      const to = typeof which === 'object' ? ` ip daddr { ${which.peers.map(address).join(', ')} }` : '';
      const from = typeof which === 'object' ? ` ip saddr { ${which.peers.map(address).join(', ')} }` : '';
      const out = `chain out { type filter hook output priority 0; oifname "eth0"${to} drop; };`;
      const into = `chain into { type filter hook input priority 0; iifname "eth0"${from} drop; };`;
      nft(name(index), `table ip lost { ${which === 'received' ? '' : out} ${which === 'sent' ? '' : into} }`);
      return () => nft(name(index), 'delete table ip lost');
    },
    cable: (index, state) => run('-n', bridge, 'link', 'set', plug(index), state),
  };
}

/** Two LANs behind routers that masquerade and drop what comes from outside, and two machines with public addresses. */
export interface NattedLans {
  within(host: 'left' | 'right' | 'public' | 'second'): readonly string[];
  /** Where the router of a LAN is reached from outside. */
  outside(side: 'left' | 'right'): string;
  /** Lets the router of a LAN forward a port to its host, as a person would set it up. */
  forward(side: 'left' | 'right', port: number): string;
}

export function nattedLans(t: Pick<ExecutionContext, 'teardown'>): NattedLans {
  const tag = `hn${process.pid}${lans}`;
  lans += 1;
  const name = (part: string): string => `${tag}${part}`;
  const parts = ['inet', 'public', 'second', 'leftnat', 'left', 'rightnat', 'right'];
  t.teardown(() => parts.forEach(part => removeNamespace(name(part))));
  const inet = name('inet');
  run('netns', 'add', inet);
  run('-n', inet, 'link', 'add', 'br0', 'type', 'bridge', 'mcast_snooping', '0');
  run('-n', inet, 'link', 'set', 'br0', 'up');
  plugIn(inet, name('public'), {device: 'eth0', port: 'pp', address: '45.0.0.10/24'});
  plugIn(inet, name('second'), {device: 'eth0', port: 'ps', address: '45.0.0.11/24'});
  for (const [index, side] of (['left', 'right'] as const).entries()) {
    const nat = name(`${side}nat`);
    const host = name(side);
    plugIn(inet, nat, {device: 'wan', port: `p${index}`, address: `45.0.0.${index + 1}/24`});
    run('netns', 'add', host);
    run('link', 'add', 'lan', 'netns', nat, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', host);
    run('-n', nat, 'addr', 'add', `192.168.${index + 1}.1/24`, 'dev', 'lan');
    run('-n', nat, 'link', 'set', 'lan', 'up');
    run('-n', host, 'addr', 'add', `192.168.${index + 1}.2/24`, 'dev', 'eth0');
    run('-n', host, 'link', 'set', 'eth0', 'up');
    run('-n', host, 'link', 'set', 'lo', 'up');
    run('-n', host, 'route', 'add', 'default', 'via', `192.168.${index + 1}.1`);
    execFileSync('ip', ['netns', 'exec', nat, 'sysctl', '-qw', 'net.ipv4.ip_forward=1']);
    nft(nat, masquerade);
  }
  const outside = (side: 'left' | 'right'): string => (side === 'left' ? '45.0.0.1' : '45.0.0.2');
  return {
    within: host => ['ip', 'netns', 'exec', name(host)],
    outside,
    forward(side, port) {
      nft(name(`${side}nat`), forwarding(side === 'left' ? '192.168.1.2' : '192.168.2.2', port));
      return `${outside(side)}:${port}`;
    },
  };
}

const masquerade = `
table ip hearsay {
  chain post { type nat hook postrouting priority 100; oifname "wan" masquerade; }
  chain pass {
    type filter hook forward priority 0; policy drop;
    iifname "lan" accept
    ct state established,related accept
    ct status dnat accept
  }
}`;

function forwarding(host: string, port: number): string {
  const rule = `tcp dport ${port} dnat to ${host}:${port}`;
  return `table ip hearsay { chain pre { type nat hook prerouting priority -100; iifname "wan" ${rule}; }; }`;
}

function nft(namespace: string, rules: string): void {
  // Among the programs of node_modules there is another one of that name.
  const env = {PATH: '/usr/sbin:/sbin:/usr/bin:/bin'};
  const stdio: StdioOptions = ['pipe', 'ignore', 'pipe'];
  execFileSync('ip', ['netns', 'exec', namespace, 'nft', '-f', '-'], {input: rules, stdio, env});
}

interface Plug {
  readonly device: string;
  readonly port: string;
  readonly address: string;
}

/** A new namespace on the bridge of another. */
function plugIn(bridge: string, namespace: string, {device, port, address}: Plug): void {
  run('netns', 'add', namespace);
  run('link', 'add', device, 'netns', namespace, 'type', 'veth', 'peer', 'name', port, 'netns', bridge);
  run('-n', bridge, 'link', 'set', port, 'master', 'br0', 'up');
  run('-n', namespace, 'link', 'set', 'lo', 'up');
  run('-n', namespace, 'addr', 'add', address, 'dev', device);
  run('-n', namespace, 'link', 'set', device, 'up');
}

function removeNamespace(name: string): void {
  try {
    run('netns', 'del', name);
  } catch {
    // It was never made, because building the network failed before.
  }
}

let lans = 0;

function run(...args: readonly string[]): void {
  execFileSync('ip', args, {stdio: ['ignore', 'ignore', 'pipe']});
}
