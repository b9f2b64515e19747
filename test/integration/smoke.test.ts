import assert from "node:assert/strict";
import { test } from "node:test";
import { withPodwright } from "../support/podwright.ts";
import { foundRuntimes } from "../support/runtimes.ts";

for (const runtime of foundRuntimes()) {
  test(`on containerd ${runtime.version} (${runtime.name}) hello starts, is restarted and stops without a trace`, async (t) => {
    t.diagnostic(`containerd ${runtime.version} from ${runtime.binDirectory}`);
    await withPodwright(async (podwright) => {
      const up = await podwright.succeed("run", "--detach", "examples/hello.yaml");
      assert.match(up, new RegExp(`running hello on containerd ${runtime.version.replaceAll(".", "\\.")}`));
      const answer = async (): Promise<string> => (await fetch("http://127.0.0.1:8080")).text();
      assert.equal(await answer(), "Hello from hello.\n");

      const before = await podwright.container("hello", "web");
      const killed = performance.now();
      await podwright.kill(await podwright.firstProcess(before.id));
      await podwright.waitFor("the restart of web", ([pod]) => {
        const web = pod?.containers.find((container) => container.name === "web");
        return pod?.ready === true && web?.restartCount === 1 && web.id !== before.id;
      });
      t.diagnostic(`restarted after ${Math.round(performance.now() - killed)} ms`);
      assert.equal(await answer(), "Hello from hello.\n");
      assert.match(await podwright.succeed("why", "hello"), /container web exited with code 137/);
      assert.match(await podwright.succeed("logs", "hello", "client"), /Hello from hello\./);
      await podwright.succeed("stop", "hello");
    }, runtime);
  });
}
