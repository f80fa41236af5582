import {execFileSync} from 'node:child_process';
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
  const port = (index: number): string => `p${index}`;
  t.teardown(() => {
    for (const namespace of [bridge, ...Array.from({length: hosts}, (_, index) => name(index))]) {
      try {
        run('netns', 'del', namespace);
      } catch {
        // It was never made, because building the LAN failed before.
      }
    }
  });
  run('netns', 'add', bridge);
  run('-n', bridge, 'link', 'add', 'br0', 'type', 'bridge', 'mcast_snooping', '0');
  run('-n', bridge, 'link', 'set', 'br0', 'up');
  for (let index = 0; index < hosts; index += 1) {
    const host = name(index);
    run('netns', 'add', host);
    run('link', 'add', 'eth0', 'netns', host, 'type', 'veth', 'peer', 'name', port(index), 'netns', bridge);
    run('-n', bridge, 'link', 'set', port(index), 'master', 'br0', 'up');
    run('-n', host, 'link', 'set', 'lo', 'up');
    run('-n', host, 'addr', 'add', `${subnet}.${index + 1}/24`, 'dev', 'eth0');
    run('-n', host, 'link', 'set', 'eth0', 'up');
  }
  return {
    within: index => ['ip', 'netns', 'exec', name(index)],
    address: index => `${subnet}.${index + 1}`,
    cable: (index, state) => run('-n', bridge, 'link', 'set', port(index), state),
  };
}

let lans = 0;

function run(...args: readonly string[]): void {
  execFileSync('ip', args, {stdio: ['ignore', 'ignore', 'pipe']});
}
