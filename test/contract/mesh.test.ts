import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {Mesh} from '@hearsay/core';
import {memoryNetwork, startMesh} from '@hearsay/mesh';
import {realEnvironment} from '../support/environment.ts';
import {meshContract} from './mesh-contract.ts';

meshContract('in memory', async () => {
  const network = memoryNetwork(realEnvironment());
  return {mesh: async (nodeName, meshName) => network.mesh(nodeName, meshName), async [Symbol.asyncDispose]() {}};
});

/** Real nodes on loopback; each names those that were started before it, so that tests beside it are not met. */
meshContract('over libp2p', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hearsay-mesh-'));
  const meshes: Mesh[] = [];
  const peers: string[] = [];
  return {
    async mesh(nodeName, meshName = 'home') {
      const identityFile = join(folder, `${nodeName}.key`);
      const settings = {identityFile, nodeName, port: 0, defaultPort: 4328, discovery: false};
      const config = {...settings, mesh: meshName, listen: ['/ip4/127.0.0.1/tcp/0'], peers: [...peers]};
      const mesh = await startMesh(config, realEnvironment());
      meshes.push(mesh);
      peers.push(...mesh.addresses());
      return mesh;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(meshes.map(mesh => mesh[Symbol.asyncDispose]()));
      await rm(folder, {recursive: true});
    },
  };
});
