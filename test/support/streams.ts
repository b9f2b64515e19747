import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Fields } from "../apiserver/objects.ts";
import type { Kubectl } from "./kubectl.ts";

export const streamImage = "docker.io/library/busybox:latest";
const script = "echo started; httpd -p 8091 -h /etc; trap 'exit 0' TERM; while true; do sleep 1; done";
const reader = "while read line; do echo got $line; done; sleep 1000";

/** A pod with a web server in `c`, and a container `reader` that echoes its input. */
export const streamPod: Fields = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "default" },
  spec: {
    nodeName: "node1",
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    containers: [
      { name: "c", image: streamImage, imagePullPolicy: "Never", command: ["sh", "-c", script] },
      { name: "reader", image: streamImage, imagePullPolicy: "Never", command: ["sh", "-c", reader], stdin: true },
    ],
  },
};

/** Incompressible, unpredictable bytes. */
export async function* noise(bytes: number): AsyncGenerator<Uint8Array> {
  const block = randomBytes(1 << 20);
  for (let sent = 0; sent < bytes; sent += block.length) {
    block.writeUInt32LE(sent / block.length, 0);
    yield Buffer.from(block.subarray(0, Math.min(block.length, bytes - sent)));
  }
}

/** A command's echo must equal its input, byte for byte. */
export async function echoIntact(kubectl: Kubectl, bytes: number): Promise<void> {
  const hash = createHash("sha256");
  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of noise(bytes)) {
      hash.update(chunk);
      yield chunk;
    }
  }
  const echoed = await kubectl.digest(["exec", "-i", "web", "-c", "c", "--", "cat"], hashed());
  assert.deepEqual(echoed, { sha256: hash.digest("hex"), bytes });
}

/** Concurrent connections through one port-forward, each with this many bytes of a file. */
export async function forwardIntact(kubectl: Kubectl, connections: number, bytesEach: number): Promise<void> {
  const make = `head -c ${bytesEach} /dev/urandom > /etc/big && sha256sum /etc/big`;
  const expected = (await kubectl.succeed("exec", "web", "-c", "c", "--", "sh", "-c", make)).split(" ")[0];
  const forward = kubectl.start("port-forward", "pod/web", ":8091");
  try {
    const [line] = (await once(forward.stdout ?? forward, "data")) as [Buffer];
    forward.stdout?.resume();
    const port = /127\.0\.0\.1:(\d+)/.exec(line.toString())?.[1];
    const ask = async (): Promise<string> => {
      const hash = createHash("sha256");
      const { body } = await fetch(`http://127.0.0.1:${port}/big`);
      for await (const chunk of body ?? []) hash.update(chunk as Uint8Array);
      return hash.digest("hex");
    };
    const got = await Promise.all(Array.from({ length: connections }, ask));
    assert.deepEqual(new Set(got), new Set([expected]));
  } finally {
    forward.kill("SIGKILL");
  }
}
