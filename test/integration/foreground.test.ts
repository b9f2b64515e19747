import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { podManifest } from "../support/manifests.ts";
import { patience } from "../support/patience.ts";
import { withPodwright } from "../support/podwright.ts";

// Two at a time: most of the time they wait.
describe("podwright run in the foreground", { concurrency: 2 }, () => {
  test("run in the foreground reports each step, and Ctrl-C stops the pod within its grace period", async () => {
    await withPodwright(async (podwright) => {
      const path = await podwright.manifest(
        "web.yaml",
        podManifest("web", "trap 'sleep 1; exit 0' TERM; sleep 60 & wait $!"),
      );
      const command = podwright.start(["run", path]);
      await command.prints(/● web is ready {3}after [\d.]+ m?s\n[^]*Ctrl-C stops them/);
      assert.match(
        command.stdout,
        /^running web on containerd [^\n]*\n✓ create the sandbox[^]*✓ create container app, attempt 0 [^]*✓ start container app/,
      );
      command.child.kill("SIGINT");
      const end = await command.ended;
      assert.equal(end.exitCode, 0, end.stderr);
      // It takes a second to end, and has five.
      assert.match(end.stdout, /stopping web: \d+ s until SIGKILL\n✓ web is stopped {3}[1-4]\.\d+ s\n$/);
      assert.deepEqual(await podwright.pods(), []);
    });
  });

  test("a second Ctrl-C cuts the grace period short", async () => {
    await withPodwright(async (podwright) => {
      const path = await podwright.manifest(
        "deaf.yaml",
        podManifest("deaf", "trap '' TERM; while true; do sleep 1; done", { grace: 60 }),
      );
      const command = podwright.start(["run", path]);
      await command.prints(/Ctrl-C stops them/);
      command.child.kill("SIGINT");
      await command.prints(/stopping deaf: (?:60|59) s until SIGKILL/);
      const asked = Date.now();
      command.child.kill("SIGINT");
      const end = await command.ended;
      assert.equal(end.exitCode, 0, end.stderr);
      assert.match(end.stdout, /stopping immediately\n/);
      assert.ok(Date.now() - asked < 40_000 * patience, `took ${Date.now() - asked} ms`);
    });
  });

  test("run --keep leaves the pod running on Ctrl-C, and run without a file manages it again", async () => {
    await withPodwright(async (podwright) => {
      const path = await podwright.manifest("kept.yaml", podManifest("kept", "sleep 60"));
      const command = podwright.start(["run", "--keep", path]);
      await command.prints(/Ctrl-C leaves them running/);
      command.child.kill("SIGINT");
      assert.equal((await command.ended).exitCode, 0);
      const { id } = await podwright.container("kept", "app");

      const again = podwright.start(["run"]);
      await again.prints(/● kept is ready/);
      assert.equal((await podwright.container("kept", "app")).id, id);
      again.child.kill("SIGINT");
      const end = await again.ended;
      assert.match(end.stdout, /✓ kept is stopped/);
    });
  });

  test("run ends with its job: 0 if it succeeded, 1 if it failed, with its last lines", async () => {
    await withPodwright(async (podwright) => {
      const failing = podManifest("failing", "echo 'no more paper' >&2; exit 3", { restartPolicy: "Never" });
      const path = await podwright.manifest("failing.yaml", failing);
      const [good, bad] = await Promise.all([
        podwright.run(["run", "examples/job.yaml"]),
        podwright.run(["run", path]),
      ]);
      assert.equal(good.exitCode, 0, good.stderr);
      assert.match(good.stdout, /● job succeeded[^]*done: 15/);
      assert.equal(bad.exitCode, 1, bad.stderr);
      assert.match(bad.stdout, /● failing failed\n {2}container app ended with exit code 3 \(Error\)[^]*no more paper/);
    });
  });

  test("environment from a ConfigMap and a Secret reaches the container, and the secret appears nowhere else", async () => {
    await withPodwright(async (podwright) => {
      await podwright.succeed("run", "--detach", "examples/config.yaml");
      const secret = "not-a-real-token";
      const logs = await podwright.succeed("logs", "config");
      assert.match(logs, new RegExp(`^Good morning from config on \\S+; the token has ${secret.length} characters\n`));
      assert.match(logs, /SETTING_GREETING=Good morning\nSETTING_LANGUAGE=en\n/);
      const printed = await Promise.all(
        [
          ["why", "config"],
          ["timeline", "config", "--json"],
          ["ps", "--json"],
        ].map((words) => podwright.succeed(...words)),
      );
      const files = ["engine.log", "containerd/containerd.log"].map((name) => podwright.path(name));
      for (const name of await readdir(podwright.layout.journal)) files.push(join(podwright.layout.journal, name));
      const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
      for (const text of [logs, ...printed, ...texts]) {
        assert.ok(!text.includes(secret) && !text.includes(Buffer.from(secret).toString("base64")), text);
      }
    });
  });
});
