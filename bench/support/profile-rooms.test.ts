import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesByRoom, cpuByRoom } from "./profile-rooms.ts";

const frame = (functionName: string, url = "") => ({
  ...{ functionName, url, scriptId: "1", lineNumber: 0, columnNumber: 0 },
});
const sourceOf = ({ url }: { readonly url: string }): string | undefined => (url === "" ? undefined : url);

test("CPU time belongs to the room that called Node.js, and idle time to none", () => {
  const nodes = [
    { id: 1, callFrame: frame("(root)"), children: [2, 4, 5, 6] },
    { id: 2, callFrame: frame("prepare", "../src/csi/client.ts"), children: [3] },
    { id: 3, callFrame: frame("open") },
    { id: 4, callFrame: frame("(idle)") },
    { id: 5, callFrame: frame("(garbage collector)") },
    { id: 6, callFrame: frame("processTimers"), children: [7] },
    { id: 7, callFrame: frame("parse", "../node_modules/@bufbuild/protobuf/index.js") },
  ];
  const profile = { nodes, startTime: 0, endTime: 0, samples: [2, 3, 4, 5, 6, 7], timeDeltas: [1, 2, 4, 8, 16, 32] };
  assert.deepEqual(Object.fromEntries(cpuByRoom(profile, sourceOf)), {
    "src/csi": 0.003,
    "garbage collection": 0.008,
    "Node.js": 0.016,
    "@bufbuild/protobuf": 0.032,
  });
});

test("allocated bytes belong to the room that called Node.js", () => {
  const node = (id: number, callFrame: ReturnType<typeof frame>, selfSize: number, children: Node[] = []): Node => {
    return { id, callFrame, selfSize, children };
  };
  const head = node(1, frame("(root)"), 1, [
    node(2, frame("list", "src/pods/list.ts"), 2, [node(3, frame("map"), 4)]),
    node(4, frame("emit"), 8),
  ]);
  assert.deepEqual(Object.fromEntries(bytesByRoom({ head }, sourceOf)), { "Node.js": 9, "src/pods": 6 });
});

interface Node {
  readonly callFrame: ReturnType<typeof frame>;
  readonly id: number;
  readonly selfSize: number;
  readonly children: Node[];
}
