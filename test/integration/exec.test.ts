import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";
import { noPty } from "../support/pty.ts";

const manifest = `apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: app
    image: "${DEMO_IMAGE}"
    command: [sh, -c, "httpd -p 8090 -h /etc; while read line; do echo got $line; done; sleep 1000"]
    stdin: true
    ports: [{ containerPort: 8090, name: http }]
  - { name: shell, image: "${DEMO_IMAGE}", command: [sh], stdin: true, tty: true }
`;

function digest(data: Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

async function execute(podwright: Podwright): Promise<void> {
  const failing = await podwright.run(["exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
  assert.deepEqual([failing.exitCode, failing.stdout], [7, "out\n"]);
  assert.match(failing.stderr, /^Defaulted container "app" out of: app, shell\n/);
  assert.match(failing.stderr, /\nerr\n/);
  assert.match(failing.stderr, /command terminated with exit code 7\n$/);

  const named = await podwright.run(["exec", "default/web", "-c", "shell", "--", "hostname"]);
  assert.deepEqual(named, { exitCode: 0, stdout: "web\n", stderr: "" });
  const typed = await podwright.run(["exec", "-i", "web", "--", "cat"], { stdin: "one\ntwo" });
  assert.deepEqual([typed.exitCode, typed.stdout], [0, "one\ntwo"]);
  const data = randomBytes(8 * 1024 * 1024).toString("base64");
  const summed = await podwright.run(["exec", "-i", "web", "--", "sha256sum"], { stdin: data });
  assert.equal(summed.stdout, `${digest(Buffer.from(data))}  -\n`);
  const echoed = await podwright.run(["exec", "-i", "web", "--", "cat"], { stdin: data });
  assert.equal(digest(Buffer.from(echoed.stdout)), digest(Buffer.from(data)));

  const absent = await podwright.run(["exec", "web", "--", "no-such-program"]);
  assert.equal(absent.exitCode, 1);
  assert.match(absent.stderr, /podwright: .*no-such-program.*not found/);
  const nowhere = await podwright.run(["exec", "web", "-c", "shel", "--", "ls"]);
  assert.equal(nowhere.exitCode, 2);
  assert.match(nowhere.stderr, /pod web has no container shel\n.*did you mean shell\?/);
  assert.match((await podwright.run(["exec", "web"])).stderr, /no command given/);
  assert.match((await podwright.run(["exec", "none", "--", "ls"])).stderr, /pod "none" not found/);
  const noTerminal = await podwright.run(["exec", "-it", "web", "--", "cat"], { stdin: "text" });
  assert.match(noTerminal.stderr, /Unable to use a TTY - input is not a terminal/);
  assert.equal(noTerminal.stdout, "text");
}

async function useTerminals(podwright: Podwright): Promise<void> {
  {
    using shell = podwright.startOnTerminal(["exec", "-it", "web", "-c", "app", "--", "sh"]);
    shell.resize(31, 97);
    await shell.shows(/# /);
    shell.type("stty size\r");
    await shell.shows(/\n31 97\r\n/);
    shell.resize(40, 120);
    await until("the new size", async () => {
      shell.type("stty size\r");
      await new Promise((done) => setTimeout(done, 200));
      return shell.shown.includes("\n40 120\r\n");
    });
    // Ctrl-C is the command's, which must run: the shell ignores one that comes before.
    shell.type("sh -c 'echo run''s; exec sleep 1000'\r");
    await shell.shows(/\nruns\r\n/);
    shell.type("\u0003");
    await shell.shows(/\^C\r\n[^]*# /);
    shell.type("exit 5\r");
    assert.equal(await shell.ended, 5);
    assert.match(shell.shown, /command terminated with exit code 5/);
  }
  {
    using attached = podwright.startOnTerminal(["attach", "-it", "web", "-c", "shell"]);
    attached.resize(25, 81);
    await attached.shows(/try pressing enter/);
    attached.type("stty size; hostname\r");
    await attached.shows(/\n25 81\r\nweb\r\n/);
  }
  {
    // The runtime disconnects attached clients when the input ends, and may pass a line on before it listens to the
    // output.
    const attached = podwright.start(["attach", "-i", "web", "-c", "app"], { keepsStdin: true });
    await until("a line to come back", async () => {
      attached.child.stdin?.write("a line\n");
      await new Promise((done) => setTimeout(done, 200));
      return /^(?:got a line\n)+$/.test(attached.stdout);
    });
    attached.child.stdin?.end();
    assert.equal((await attached.ended).exitCode, 0);
  }
  const deaf = await podwright.run(["attach", "-i", "web", "-c", "app", "-t"], { stdin: "" });
  assert.match(deaf.stderr, /container app did not allocate one/);
}

async function forwardPorts(podwright: Podwright): Promise<void> {
  const forward = podwright.start(["port-forward", "web", ":http", "0:8091"]);
  await forward.prints(/Forwarding from 127\.0\.0\.1:\d+ -> 8091/);
  const portOf = (remote: number): string =>
    new RegExp(`127\\.0\\.0\\.1:(\\d+) -> ${remote}`).exec(forward.stdout)?.[1] ?? "";
  const ask = async (): Promise<string> => (await fetch(`http://127.0.0.1:${portOf(8090)}/hostname`)).text();
  assert.deepEqual(new Set(await Promise.all(Array.from({ length: 30 }, ask))), new Set(["web\n"]));
  await assert.rejects(fetch(`http://127.0.0.1:${portOf(8091)}/`));
  await forward.prints(/podwright: port 8091 of pod web: .*(?:refused|failed)/);
  forward.child.kill("SIGINT");
  assert.equal((await forward.ended).exitCode, 0);
  assert.match(forward.stdout, /Handling connection for \d+/);
  const unknown = await podwright.run(["port-forward", "web", "80:none"]);
  assert.equal(unknown.exitCode, 2);
  assert.match(unknown.stderr, /has no port "none"/);
}

test("podwright exec, attach and port-forward", async (t) => {
  await withPodwright(async (podwright) => {
    await podwright.succeed("run", "--detach", await podwright.manifest("web.yaml", manifest));
    await t.test("exec: output, errors, input and the exit code of a command in a container", () => execute(podwright));
    await t.test("exec -it, attach -it: the container's terminal is this one, its size too", { skip: noPty }, () =>
      useTerminals(podwright),
    );
    await t.test("port-forward: several ports, many connections, a port that nobody listens on", () =>
      forwardPorts(podwright),
    );
  });
});
