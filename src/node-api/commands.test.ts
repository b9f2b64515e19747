import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { answerText, nodeApiDeps, nodeRequest, webPod } from "../../test/support/node-api.ts";
import { testContainer, testStatus } from "../../test/support/observed.ts";
import { type Cri, CriError } from "../ports/cri.ts";
import type { NodePod } from "./node-pods.ts";
import { nodeApi } from "./routes.ts";

type Runtime = Partial<Record<"checkpointContainer" | "execSync" | "exec", (request: object) => Promise<object>>>;

const unimplemented = async (): Promise<never> => {
  throw new CriError("Unimplemented", "CheckpointContainer", "unknown method CheckpointContainer");
};

/** The response to a POST, as `<status> <text>`. @param pod the node's only one */
async function post(path: string, runtime: Runtime = {}, pod: Partial<NodePod> = {}): Promise<string> {
  const cri = { runtime, images: {} } as unknown as Cri;
  const deps = await nodeApiDeps({ cri, pods: () => [webPod(pod)] });
  return await answerText(await nodeApi(deps)(nodeRequest("POST", path, { upgrade: path.startsWith("/exec") })));
}

describe("/checkpoint", () => {
  test("answers with the checkpoint's file, for which the runtime has the requested time", async () => {
    const asked: object[] = [];
    const checkpointContainer = async (request: object): Promise<object> => {
      asked.push(request);
      return {};
    };
    const location = "/checkpoints/checkpoint-web_default-app-2026-11-20T14:02:00Z.tar";
    for (const query of ["", "?timeout=5&timeout=600", "?timeout=999999999999"]) {
      const answer = await post(`/checkpoint/default/web/app${query}`, { checkpointContainer });
      assert.equal(answer, `200 ${JSON.stringify({ items: [location] })}`);
    }
    const { id: containerId } = testContainer({ name: "app" });
    assert.deepEqual(
      asked,
      [0n, 600n, 999_999_999n].map((timeout) => ({ containerId, location, timeout })),
    );
  });

  test("has the runtime's status in its error, as clients expect of the Go kubelet", async () => {
    assert.equal(
      await post("/checkpoint/default/web/app", { checkpointContainer: unimplemented }),
      "500 checkpointing of default/web/app failed " +
        "(rpc error: code = Unimplemented desc = unknown method CheckpointContainer)",
    );
  });

  test("has upstream's error for what is not there, or cannot be asked", async () => {
    assert.equal(await post("/checkpoint/default/none/app"), "404 pod does not exist");
    assert.equal(await post("/checkpoint/default/web/none"), "404 container none does not exist");
    for (const timeout of ["", "x", "1.5", "1s"]) {
      const answer = await post(`/checkpoint/default/web/app?timeout=${timeout}`);
      assert.equal(answer, "404 cannot parse value of timeout parameter", timeout);
    }
    const failed = "500 checkpointing of default/web/app failed";
    const exited = testStatus([], [testContainer({ name: "app", state: "exited" })]);
    assert.equal(
      await post("/checkpoint/default/web/app", {}, { observed: exited }),
      `${failed} (container app not found)`,
    );
    assert.equal(
      await post("/checkpoint/default/web/app?timeout=-1"),
      `${failed} (CheckpointContainer requires the timeout value to be > 0)`,
    );
  });
});

test("the runtime's status is in the errors of /run and /exec, too", async () => {
  assert.equal(
    await post("/run/default/web/app?cmd=true", { execSync: unimplemented }),
    "500 rpc error: code = Unimplemented desc = unknown method CheckpointContainer",
  );
  assert.match(
    await post("/exec/default/web/app?command=true&output=1", { exec: unimplemented }),
    /^500 the container runtime refused to exec: rpc error: code = Unimplemented desc = /u,
  );
});
