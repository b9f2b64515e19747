import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { networkInterfaces } from "node:os";
import { describe, test } from "node:test";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { importImageOfUser } from "../support/images.ts";
import { politeSleep } from "../support/manifests.ts";
import { patience } from "../support/patience.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";
import { ownProgram } from "../support/program.ts";

const shell = (name: string, script: string, more: object = {}): object => ({
  name,
  image: DEMO_IMAGE,
  imagePullPolicy: "IfNotPresent",
  command: ["/bin/sh", "-c", script],
  ...more,
});

async function start(podwright: Podwright, name: string, spec: object, wait: "none" | "ready" = "none"): Promise<void> {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 1, ...spec },
  };
  await podwright.succeed(
    "run",
    "--detach",
    "--wait",
    wait,
    await podwright.manifest(`${name}.yaml`, JSON.stringify(pod)),
  );
}

/** Waits until a container's log matches, and returns it. */
async function log(podwright: Podwright, pod: string, container: string, wanted: RegExp): Promise<string> {
  let text = "";
  await until(
    () => `${pod}/${container} to print ${wanted}; it printed ${text.slice(-1000)}`,
    async () => {
      text = (await podwright.run(["logs", pod, container])).stdout;
      return wanted.test(text);
    },
    30_000,
  );
  return text;
}

async function withServer(work: (port: number) => Promise<void>): Promise<void> {
  const server: Server = createServer((_request, response) => response.end("the node's own\n"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const address = server.address();
    assert.ok(typeof address === "object" && address !== null);
    await work(address.port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

// Most of the time they wait.
describe("a hostile pod cannot", { concurrency: 2 }, () => {
  test("exchange part of its volume for a link to the node while that is mounted (CVE-2021-25741)", async () => {
    await withPodwright(async (podwright) => {
      await writeFile(podwright.path("the-nodes-secret"), "");
      const exchange = "mv /v/part /v/away; ln -s / /v/part; rm /v/part; mv /v/away /v/part";
      const look = `ls -a /m${podwright.layout.stateDirectory} 2>/dev/null; echo looked; ${politeSleep}`;
      const victims = Array.from({ length: 12 }, (_, index) =>
        shell(`victim-${index}`, look, { volumeMounts: [{ name: "v", mountPath: "/m", subPath: "part" }] }),
      );
      const attacker = shell("attacker", `mkdir /v/part; while true; do ${exchange}; done`, {
        volumeMounts: [{ name: "v", mountPath: "/v" }],
      });
      await start(podwright, "race", { containers: [attacker, ...victims], volumes: [{ name: "v", emptyDir: {} }] });
      const tried = (state: string, reason: string): boolean =>
        state === "running" || reason === "CreateContainerConfigError";
      const pods = await podwright.waitFor(
        "every victim to be tried",
        ([pod]) =>
          (pod?.containers ?? []).length === 13 &&
          pod?.containers.every((one) => tried(one.state, one.reason)) === true,
        60_000,
      );
      const ran = pods[0]?.containers.filter(({ name, state }) => name !== "attacker" && state === "running") ?? [];
      const shown = await Promise.all(ran.map(({ name }) => log(podwright, "race", name, /looked/)));
      assert.deepEqual(new Set(shown), ran.length === 0 ? new Set() : new Set(["looked\n"]));
    });
  });

  test("run as root because its image was already present, or because it is restarted (CVE-2019-11245)", async () => {
    await withPodwright(async (podwright) => {
      await start(podwright, "root", {
        securityContext: { runAsNonRoot: true },
        containers: [shell("app", politeSleep)],
      });
      await importImageOfUser(podwright, "podwright.test/user:1", "1234");
      const image = { image: "podwright.test/user:1" };
      const mine = "id -u; sleep 1; exit 1";
      await start(podwright, "user", {
        securityContext: { runAsNonRoot: true },
        containers: [shell("app", mine, image), shell("root", mine, { ...image, securityContext: { runAsUser: 0 } })],
      });
      const pods = await podwright.waitFor("a restart and the refusals", (all) => {
        const [user, refused] = all.find(({ name }) => name === "user")?.containers ?? [];
        const root = all.find(({ name }) => name === "root")?.containers[0];
        return (
          (user?.restartCount ?? 0) > 0 && [root, refused].every((one) => one?.reason === "CreateContainerConfigError")
        );
      });
      const message = (pod: string, index: number): string =>
        pods.find(({ name }) => name === pod)?.containers[index]?.message ?? "";
      assert.match(message("root", 0), /container has runAsNonRoot and image will run as root/);
      assert.match(message("user", 1), /container's runAsUser breaks non-root policy/);
      assert.match(await log(podwright, "user", "app", /\d/), /^1234\n$/);
      assert.match(await podwright.succeed("logs", "--previous", "user", "app"), /^1234\n$/);
    });
  });

  test("let its /etc/hosts grow with each restart (CVE-2020-8557)", async () => {
    await withPodwright(async (podwright) => {
      const grow = "echo before $(wc -c < /etc/hosts); head -c 1000000 /dev/zero >> /etc/hosts; exit 1";
      await start(podwright, "hosts", { containers: [shell("app", grow)] });
      await podwright.waitFor("a restart", ([pod]) => (pod?.containers[0]?.restartCount ?? 0) > 0);
      const before = Number(/before (\d+)/.exec(await log(podwright, "hosts", "app", /before/))?.[1]);
      assert.ok(before > 50 && before < 1_000, `the next instance finds ${before} bytes`);
    });
  });

  test("make podwright show or delete files of the node with links among its logs", async () => {
    await withPodwright(async (podwright) => {
      const secret = podwright.path("the-nodes-secret");
      await writeFile(secret, "2026-11-20T12:00:00.000000000Z stdout F hunter2\n");
      const links = `cd /logs/default_thief_*/app || exit 2
        for name in 0.log 0.log.20260101-000000 0.log.20260102-000000.gz 1.log; do rm -f $name; ln -s ${secret} $name; done
        exit 1`;
      await start(podwright, "thief", {
        restartPolicy: "Never",
        containers: [
          shell("app", links, {
            terminationMessagePolicy: "FallbackToLogsOnError",
            volumeMounts: [{ name: "logs", mountPath: "/logs" }],
          }),
        ],
        volumes: [{ name: "logs", hostPath: { path: podwright.layout.podLogs, type: "Directory" } }],
      });
      await podwright.waitFor("the end", ([pod]) => pod?.containers[0]?.exitCode === 1);
      const shown = await Promise.all(
        [
          ["logs", "thief"],
          ["logs", "--tail", "5", "thief"],
          ["ps", "--json"],
          ["why", "thief"],
        ].map((words) => podwright.run(words)),
      );
      assert.doesNotMatch(JSON.stringify(shown), /hunter2/);
      assert.match(shown[0]?.stderr ?? "", /ELOOP|symbolic link/);
      await podwright.run(["stop", "thief"]);
      assert.match(await readFile(secret, "utf8"), /hunter2/);
    });
  });

  test("reach the node's loopback, even if a host port on 127.0.0.1 opens a way there (CVE-2020-8558)", async () => {
    await withServer(async (port) => {
      await withPodwright(async (podwright) => {
        const ports = [{ containerPort: 80, hostPort: 18_492, hostIP: "127.0.0.1" }];
        const web = "echo the pod > /tmp/index.html; httpd -f -p 80 -h /tmp & wait";
        await start(podwright, "web", { containers: [shell("app", web, { ports })] }, "ready");
        const answer = async (host: string): Promise<string> =>
          await fetch(`http://${host}:18492`, { signal: AbortSignal.timeout(3_000) }).then(
            async (response) => response.text(),
            () => "refused",
          );
        assert.equal(await answer("127.0.0.1"), "the pod\n", "the node itself reaches the pod");
        const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
        const outer = addresses.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
        assert.ok(outer !== undefined);
        assert.equal(await answer(outer), "refused", "a host port is open on its own address alone");
        const routed = await readFile(`/proc/sys/net/ipv4/conf/${podwright.layout.cni.bridge}/route_localnet`, "utf8");
        assert.equal(routed.trim(), "1", "portmap has opened the way");

        // All that a container can do: send the node's loopback addresses over the pod's interface.
        const attack = `gateway=$(ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p')
          echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet; echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
          ip addr del 127.0.0.1/8 dev lo; ip route add 127.0.0.1/32 via $gateway dev eth0 && echo routed
          printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 127.0.0.1 ${port}; echo tried`;
        await start(podwright, "attacker", {
          restartPolicy: "Never",
          containers: [shell("app", attack, { securityContext: { privileged: true } })],
        });
        assert.equal(await log(podwright, "attacker", "app", /tried/), "routed\ntried\n");
      });
    });
  });

  test("control a terminal with what it prints or its names, or fake lines of its log", async () => {
    await withPodwright(async (podwright) => {
      const evil = String.raw`\033]0;owned\007\033[2J\302\233x\r`;
      const fake = "2026-11-20T12:00:00.000000000Z stdout F from nobody";
      const print = `printf '${evil}a\\n'; echo '${fake}'; printf 'bad \\377\\376 utf8\\n'
        head -c 300000 /dev/zero | tr '\\0' y; echo; printf '${evil}' > /dev/termination-log; exit 1`;
      const probe = {
        exec: { command: ["/bin/sh", "-c", `printf '${evil}'; exit 1`] },
        periodSeconds: 1,
        failureThreshold: 1,
      };
      const preStop = { exec: { command: ["/bin/sh", "-c", `printf '${evil}'; exit 1`] } };
      await start(podwright, "loud", {
        restartPolicy: "Never",
        containers: [
          shell("app", print),
          shell("probed", politeSleep, { livenessProbe: probe, lifecycle: { preStop } }),
        ],
      });
      await podwright.waitFor("both to end", ([pod]) => pod?.state === "terminated");
      const told = await Promise.all(["why", "timeline", "blame"].map((command) => podwright.succeed(command, "loud")));
      const shown = [...told, await podwright.succeed("ps"), await podwright.succeed("ps", "-o", "wide")];
      for (const text of shown) assert.doesNotMatch(text, /[^\n\P{Cc}]/u, "no control character reaches a terminal");
      assert.match(shown.join(""), /owned/);

      const raw = await podwright.succeed("logs", "loud", "app");
      assert.match(
        raw,
        /^2026-11-20T12:00:00.000000000Z stdout F from nobody$/m,
        "a line of the container, not of the log",
      );
      assert.equal(/y{2,}/.exec(raw)?.[0].length, 300_000, "a long line is whole");
      // script(1) gives the command a terminal.
      const logs = [...ownProgram, "logs", "loud", "app", "--state-dir", podwright.layout.stateDirectory];
      const command = logs.join(" ");
      const onTerminal = await systemProcesses.run("script", ["-qec", command, "/dev/null"], {
        timeoutMs: 30_000 * patience,
      });
      assert.equal(onTerminal.exitCode, 0, onTerminal.stdout.slice(-500));
      assert.doesNotMatch(onTerminal.stdout.replaceAll("\r\n", "\n"), /[^\n\P{Cc}]/u);
      assert.match(onTerminal.stdout, /\\x1b\]0;owned\\x07/);
    });
  });

  test("inherit open files of podwright or of the runtime (CVE-2024-21626)", async () => {
    await withPodwright(async (podwright) => {
      const list = "for fd in /proc/self/fd/* /proc/1/fd/*; do echo $fd $(readlink $fd); done; echo listed";
      const exec = { command: ["/bin/sh", "-c", `${list} > /tmp/exec`] };
      const containers = [
        shell("app", `${list}; until [ -s /tmp/exec ]; do sleep 0.2; done; cat /tmp/exec; ${politeSleep}`, {
          livenessProbe: { exec, periodSeconds: 1 },
        }),
      ];
      await start(podwright, "files", { containers });
      const text = await log(podwright, "files", "app", /listed[^]*listed/);
      const open = text.split("\n").flatMap((line) => /^\/proc\/\S+\/fd\/\d+ (.+)$/.exec(line)?.[1] ?? []);
      const harmless = /^(?:pipe:\[\d+\]|\/dev\/null|\/proc\/\d+\/fd|\/tmp\/exec|\/dev\/pts\/\d+)$/;
      assert.deepEqual(
        open.filter((target) => !harmless.test(target)),
        [],
      );

      const pid = await podwright.containerdPid();
      const descriptors = `/proc/${pid}/fd`;
      const targets = await Promise.all(
        (await readdir(descriptors)).map(async (fd) => readlink(`${descriptors}/${fd}`).catch(() => "")),
      );
      const { journal, lockFile, manifests, kubeletRoot } = podwright.layout;
      const podwrights = targets.filter((path) =>
        [journal, lockFile, manifests, kubeletRoot].some((own) => path.startsWith(own)),
      );
      assert.deepEqual(podwrights, []);
    });
  });
});

test("features that no pod may use are rejected by name before anything runs", async () => {
  await withPodwright(async (podwright) => {
    const app = shell("app", "true");
    const volumes = (volume: object): object => ({ volumes: [{ name: "v", ...volume }] });
    const mount = (more: object): object =>
      shell("app", "true", { volumeMounts: [{ name: "v", mountPath: "/v", ...more }] });
    const rows: readonly (readonly [string, object, RegExp])[] = [
      ["a container named after a path", { containers: [shell("../../etc", "true")] }, /containers\[0\]\.name/],
      ["a container named after a file", { containers: [shell("a/0.log", "true")] }, /containers\[0\]\.name/],
      [
        "a subPath that goes back",
        { containers: [mount({ subPath: "../.." })], ...volumes({ emptyDir: {} }) },
        /subPath/,
      ],
      [
        "a gitRepo volume (CVE-2024-10220)",
        { containers: [mount({})], ...volumes({ gitRepo: { repository: "file:///etc" } }) },
        /gitRepo[^]*not supported/,
      ],
      [
        "a Localhost seccomp profile without a name (CVE-2023-2431)",
        { containers: [app], securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "" } } },
        /seccompProfile/,
      ],
      [
        "a sysctl with another behind a plus sign (CVE-2022-0811)",
        {
          containers: [app],
          securityContext: { sysctls: [{ name: "kernel.shm_rmid_forced+kernel.core_pattern", value: "1" }] },
        },
        /sysctls\[0\]\.name/,
      ],
      [
        "a hostPath that goes back",
        { containers: [mount({})], ...volumes({ hostPath: { path: "/tmp/../etc" } }) },
        /hostPath/,
      ],
    ];
    for (const [what, spec, wanted] of rows) {
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "bad" }, spec };
      const path = await podwright.manifest("bad.yaml", JSON.stringify(pod));
      const { exitCode, stderr } = await podwright.run(["run", "--detach", path]);
      assert.equal(exitCode, 2, `${what}: ${stderr}`);
      assert.match(stderr, wanted, what);
    }
    assert.equal(await podwright.enginePid(), undefined);
  });
});
