import assert from "node:assert/strict";
import { chmod } from "node:fs/promises";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { podManifest, politeSleep } from "../support/manifests.ts";
import { type Podwright, withPodwright } from "../support/podwright.ts";
import { foundRuntimes, runtimeUnderTest } from "../support/runtimes.ts";

const asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
/** The machine's own containerd, which is not searched for in a directory of the test's. */
const system = foundRuntimes().find(({ name }) => name === "system") ?? runtimeUnderTest();

/** Runs a command in an environment where these programs of /usr/bin are not executable. */
function without(...programs: readonly string[]): string[] {
  const hide = programs.map((program) => `mount --bind /dev/null /usr/bin/${program}`).join(" && ");
  return ["unshare", "--mount", "sh", "-c", `${hide} && exec "$@"`, "sh"];
}

/** Nothing was started, and nothing is there but what the test put there. */
async function expectNothingStarted(podwright: Podwright): Promise<void> {
  assert.equal(await podwright.enginePid(), undefined);
  assert.equal(await podwright.containerdPid(), undefined);
}

async function webManifest(podwright: Podwright): Promise<string> {
  return podwright.manifest("web.yaml", podManifest("web", politeSleep));
}

test("a user who is not root gets one line of explanation before anything starts", async () => {
  await withPodwright(async (podwright) => {
    const path = await webManifest(podwright);
    await chmod(podwright.layout.stateDirectory, 0o755);
    for (const words of [["run", "--detach", path], ["doctor"]]) {
      const end = await podwright.run(words, { through: asNobody });
      assert.equal(end.exitCode, 3, end.stderr);
      const said = `${end.stdout}${end.stderr}`.split("\n").filter((line) => line.includes("not root"));
      assert.equal(said.length, 1, end.stdout + end.stderr);
      assert.match(`${end.stdout}${end.stderr}`, /not root[^]*sudo/);
    }
    await expectNothingStarted(podwright);
  });
});

test("missing programs are named with their packages", async () => {
  await withPodwright(async (podwright) => {
    const path = await webManifest(podwright);
    const end = await podwright.run(["run", "--detach", path], { through: without("containerd", "catatonit") });
    assert.equal(end.exitCode, 3, end.stderr);
    assert.match(end.stderr, /programs: missing: containerd; run: apt-get install containerd\n/);
    assert.match(end.stderr, /programs: missing: catatonit; run: apt-get install catatonit\n/);
    await expectNothingStarted(podwright);
  }, system);
});

/** What `podwright` alone shows on a terminal. */
async function welcome(podwright: Podwright, through: readonly string[] = []): Promise<readonly [number, string]> {
  using command = podwright.startOnTerminal([], through);
  const exitCode = await command.ended;
  return [exitCode, stripVTControlCharacters(command.shown).replaceAll("\r", "")];
}

test("podwright alone on a terminal says whether the machine is ready, and what to do first", async () => {
  await withPodwright(async (podwright) => {
    const [missing, remedy] = await welcome(podwright, without("containerd"));
    assert.equal(missing, 3, remedy);
    assert.match(
      remedy,
      /✗ programs: missing: containerd\n {2}→ run: apt-get install containerd\nthen: \S*podwright\n$/u,
    );
    const [ready, first] = await welcome(podwright);
    assert.equal(ready, 0, first);
    assert.match(first, /^podwright \S+ runs Kubernetes pods on this machine\.\n✓ ready to run pods\n/u);
    assert.match(first, /\n {2}\S*podwright run --state-dir \S+ \S*examples\/hello\.yaml\n {2}\S*podwright --help\n$/u);
    await expectNothingStarted(podwright);
    await podwright.succeed("run", "--detach", "--wait", "none", await webManifest(podwright));
    assert.match((await welcome(podwright))[1], /✓ 1 pod here: \S*podwright ps --state-dir \S+\n$/u);
    const [refused, whose] = await welcome(podwright, ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    assert.equal(refused, 3, whose);
    assert.match(
      whose,
      /! an engine runs here, and only root may see its pods: sudo \S*podwright ps --state-dir \S+\n$/u,
    );
    await podwright.succeed("stop", "--grace", "0", "web");
  }, system);
});

test("an unusable state directory is rejected with the reason", async () => {
  await withPodwright(async (podwright) => {
    const path = await webManifest(podwright);
    for (const [directory, reason] of [
      ["/proc/podwright", /state directory|can't be|No such file/],
      [podwright.path("a:b"), /overlayfs cannot mount/],
      ["/", /is the root directory/],
    ] as const) {
      const end = await podwright.run(["run", "--detach", "--state-dir", directory, path]);
      assert.ok(end.exitCode === 2 || end.exitCode === 3, `${directory}: ${end.exitCode}`);
      assert.match(end.stderr, reason);
      assert.doesNotMatch(end.stderr, /a bug in podwright/);
    }
    await expectNothingStarted(podwright);
  });
});

test("a second engine on a state directory is rejected, and so is a runtime that another podwright uses", async () => {
  await withPodwright(async (podwright) => {
    const path = await webManifest(podwright);
    await podwright.succeed("run", "--detach", path);
    const engine = await podwright.enginePid();
    const second = await podwright.run(["engine", "--state-dir", podwright.layout.stateDirectory]);
    assert.deepEqual([second.exitCode, second.stderr.includes(`another engine uses`)], [3, true], second.stderr);

    await withPodwright(async (other) => {
      const { endpoint } = podwright.layout.containerd;
      const end = await other.run(["run", "--detach", "--runtime-endpoint", endpoint, path]);
      assert.equal(end.exitCode, 3, end.stderr);
      assert.match(end.stderr, new RegExp(`is used by another podwright \\(pid ${engine}:`));
    });
    assert.equal((await podwright.pod("web")).ready, true);
  });
});

test("doctor finds no problem where pods run, as text and as JSON", async () => {
  await withPodwright(async (podwright) => {
    assert.match(await podwright.succeed("doctor"), /ready to run pods/);
    const answer = JSON.parse(await podwright.succeed("doctor", "--json")) as { checks: { ok: string }[] };
    assert.ok(answer.checks.length > 5);
    assert.ok(answer.checks.every(({ ok }) => ok !== "failed"));
  });
});
