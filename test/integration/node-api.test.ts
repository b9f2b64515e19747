import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request, type RequestOptions } from "node:https";
import { test } from "node:test";
import { CertificateAuthority } from "../../src/linux/certificates/certificates.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { type KubeletNode, withKubeletNode } from "../support/kubelet-node.ts";
import { until } from "../support/podwright.ts";
import { ChannelSocket } from "../support/websocket.ts";

const manifest = `apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: app
    image: "${DEMO_IMAGE}"
    command: [sh, -c, "echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three; httpd -p 8090 -h /etc; sleep 1000"]
    ports: [{ containerPort: 8090 }]
`;

const now = new Date();
const clients = new CertificateAuthority("clients", now);
const jane = clients.issue({
  subject: { commonName: "jane", organizations: ["ops"] },
  usages: ["client"],
  notBefore: new Date(now.getTime() - 60_000),
  notAfter: new Date(now.getTime() + 3_600_000),
});

/** A client of the kubelet's API on a node. */
class Client {
  readonly #base: RequestOptions;
  constructor(base: RequestOptions) {
    this.#base = base;
  }

  with(more: RequestOptions): Client {
    return new Client({ ...this.#base, ...more });
  }

  async open(path: string, method = "GET"): Promise<IncomingMessage> {
    const outgoing = request({ ...this.#base, path, method, agent: false });
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    return response.setEncoding("utf8");
  }

  async ask(path: string, method = "GET"): Promise<string> {
    const response = await this.open(path, method);
    let text = "";
    for await (const chunk of response) text += String(chunk);
    return `${response.statusCode} ${text}`;
  }

  async stream(path: string, protocol = "v4.channel.k8s.io"): Promise<ChannelSocket> {
    return await ChannelSocket.open({ ...this.#base, path }, protocol);
  }
}

async function startNode(node: KubeletNode): Promise<{ readonly stranger: Client; readonly known: Client }> {
  const { podwright } = node;
  await podwright.manifest("ca.crt", clients.certificate);
  await podwright.manifest("tokens", '# clients\nt0ken-of-bob,bob,1,"dev,ops"\n');
  await node.write("web.yaml", manifest);
  await node.startContainerd();
  const certificates = podwright.path("pki");
  const files = ["--token-auth-file", podwright.path("tokens"), "--client-ca-file", podwright.path("ca.crt")];
  const kubelet = node.startKubelet("--cert-dir", certificates, ...files);
  await kubelet.prints(/serving the kubelet API/);
  await node.answers();
  await podwright.waitFor("web-node1 to run", (pods) => pods.some((pod) => pod.name === "web-node1" && pod.ready));
  const ca = await readFile(`${certificates}/kubelet.crt`);
  assert.equal((await stat(`${certificates}/kubelet.key`)).mode & 0o777, 0o600);
  const stranger = new Client({ host: "127.0.0.1", port: node.apiPort, servername: "node1", ca });
  return { stranger, known: stranger.with({ cert: jane.certificate, key: jane.key }) };
}

const pod = "default/web-node1";

test("the kubelet's API: anonymous clients get nothing; authenticated ones see pods, logs and health, and run commands", async () => {
  await withKubeletNode(async (node) => {
    const { stranger, known } = await startNode(node);
    for (const path of ["/pods", `/containerLogs/${pod}/app`, "/healthz", "/configz", "/nonsense"]) {
      assert.equal(await stranger.ask(path), "401 Unauthorized", path);
    }
    const bob = stranger.with({ headers: { Authorization: "Bearer t0ken-of-bob" } });
    const guess = stranger.with({ headers: { Authorization: "Bearer t0ken-of-bo" } });
    assert.equal(await bob.ask("/healthz"), "200 ok");
    assert.equal(await guess.ask("/healthz"), "401 Unauthorized");
    assert.match(await known.ask("/healthz?verbose"), /^200 \[\+\]ping ok[\s\S]*\[\+\]pleg ok: last relist/);

    const list = JSON.parse((await known.ask("/pods")).slice(4)) as {
      readonly kind: string;
      readonly items: readonly {
        readonly metadata: { readonly name: string };
        readonly status: { readonly phase: string };
      }[];
    };
    assert.deepEqual(
      [list.kind, list.items.map((item) => [item.metadata.name, item.status.phase])],
      ["PodList", [["web-node1", "Running"]]],
    );
    assert.match(await known.ask("/runningpods/"), /"name":"web-node1"/);
    assert.match(await known.ask("/configz"), /^200 \{"kubeletconfig":\{"kind":"KubeletConfiguration"/);

    // The two streams reach the log by two ways: the pauses between the lines keep their order.
    await until("the last line", async () => (await known.ask(`/containerLogs/${pod}/app`)).endsWith("three\n"));
    assert.equal(await known.ask(`/containerLogs/${pod}/app?tailLines=1`), "200 three\n");
    assert.equal(await known.ask(`/containerLogs/${pod}/app`), "200 one\ntwo\nthree\n");
    assert.equal(await known.ask(`/containerLogs/${pod}/app?stream=Stderr`), "200 two\n");
    assert.equal(await known.ask(`/containerLogs/${pod}/app?limitBytes=5&stream=Stdout`), "200 one\nt");
    assert.match(await known.ask(`/containerLogs/${pod}/app?tailLines=-1`), /^422 tailLines must be/);
    assert.match(
      await known.ask(`/containerLogs/${pod}/app?previous=true`),
      /^400 previous terminated container "app"/,
    );
    assert.match(await known.ask(`/containerLogs/${pod}/other`), /^404 container "other" not found/);
    for (const hostile of ["..%2f..%2f..%2fetc", "%2e%2e", "app%2f..%2fapp"]) {
      assert.match(await known.ask(`/containerLogs/${pod}/${hostile}`), /^404 /, hostile);
      assert.match(await known.ask(`/logs/${hostile}/passwd`), /^404 /, hostile);
    }
    assert.match(await known.ask("/containerLogs/default/none/app"), /^404 pod "none" does not exist/);

    assert.equal(await known.ask(`/run/${pod}/app?cmd=echo%20hello%20world`, "POST"), "200 hello world\n");
    assert.match(await known.ask(`/run/${pod}/app?cmd=false`, "POST"), /^500 command 'false' exited with 1/);
    assert.equal(await known.ask(`/run/${pod}/app?cmd=true`), "405 405: Method Not Allowed");
    assert.match(
      await known.ask(`/checkpoint/${pod}/app`, "POST"),
      /^500 checkpointing of default\/web-node1\/app failed \(rpc error: code = \w+ desc = /,
    );
    assert.match(await known.ask(`/exec/${pod}/app?command=true&output=1`, "POST"), /^400 Upgrade request required/);
  });
});

test("the kubelet's API: logs are followed, commands and ports are streamed through the runtime", async () => {
  await withKubeletNode(async (node) => {
    const { stranger, known } = await startNode(node);
    await until("the last line", async () => (await known.ask(`/containerLogs/${pod}/app`)).endsWith("three\n"));
    const following = await known.open(`/containerLogs/${pod}/app?follow=true&tailLines=0`);
    assert.equal(await known.ask(`/run/${pod}/app?cmd=sh%20-c%20echo>/proc/1/fd/1`, "POST"), "200 ");
    const [line] = (await once(following, "data")) as [string];
    assert.equal(line, "\n");
    following.destroy();

    await assert.rejects(stranger.stream(`/exec/${pod}/app?command=id&output=1`), /401: Unauthorized/);
    const script = "read line; echo got $line; echo bad >&2; exit 3";
    const query = `command=sh&command=-c&command=${encodeURIComponent(script)}&input=1&output=1&error=1`;
    {
      using exec = await known.stream(`/exec/${pod}/app?${query}`);
      await exec.send(0, "a line\n");
      const channels = await exec.receive();
      assert.equal(channels.get(1)?.toString(), "got a line\n");
      assert.equal(channels.get(2)?.toString(), "bad\n");
      assert.match(channels.get(3)?.toString() ?? "", /"reason":"NonZeroExitCode".*"message":"3"/);
    }
    {
      using exec = await known.stream(`/exec/${pod}/app?${query}`, "v5.channel.k8s.io");
      await exec.send(0, "a line\n");
      const channels = await exec.receive();
      assert.equal(channels.get(1)?.toString(), "got a line\n");
      assert.equal(channels.get(2)?.toString(), "bad\n");
      assert.match(channels.get(3)?.toString() ?? "", /"reason":"NonZeroExitCode".*"message":"3"/);
    }
    {
      // Of the protocols that this server speaks the newest alone can tell a command that its input is over.
      using exec = await known.stream(`/exec/${pod}/app?command=wc&command=-c&input=1&output=1`, "v5.channel.k8s.io");
      for (let sent = 0; sent < 8; sent++) await exec.send(0, Buffer.alloc(1 << 20));
      await exec.send(255, Uint8Array.of(0));
      assert.equal((await exec.receive()).get(1)?.toString().trim(), String(8 << 20));
    }
    const size = 20_000_000;
    {
      const command = `command=head&command=-c&command=${size}&command=/dev/zero`;
      for (const protocol of ["v4.channel.k8s.io", "v5.channel.k8s.io"]) {
        using exec = await known.stream(`/exec/${pod}/app?${command}&output=1`, protocol);
        const channels = await exec.receive();
        assert.equal(channels.get(1)?.length, size);
        assert.match(channels.get(3)?.toString() ?? "", /"status":"Success"/);
      }
    }
    {
      using forward = await known.stream(`/portForward/${pod}?port=8090`);
      await forward.send(0, "GET /hostname HTTP/1.0\r\n\r\n");
      const texts: string[] = [];
      await until("the web server's answer", async () => {
        const message = await forward.next();
        if (message?.channel === 0) texts.push(message.data.toString("latin1"));
        return texts.join("").includes("web-node1");
      });
    }
    await assert.rejects(known.stream(`/exec/${pod}/none?command=id&output=1`), /404: container not found/);
    await assert.rejects(known.stream(`/exec/${pod}/app?command=id`), /400: you must specify at least 1 of/);
    await assert.rejects(known.stream(`/portForward/${pod}?port=99999`), /400: "99999" is not a port/);
  });
});
