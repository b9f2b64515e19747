import assert from "node:assert/strict";
import { test } from "node:test";
import { Node } from "../ports/gen/csi/v1/csi_pb.js";
import { throughOwnDirectory } from "./own-sockets.ts";

test("a caller hears of a lost connection through the own root directory, too", () => {
  let losses = 0;
  const connect = (_service: unknown, _path: string, _name: string, onLost?: () => void): never => onLost?.() as never;
  throughOwnDirectory({ connect }, "/told", "/own").connect(Node, "/told/plugins/d/csi.sock", "d", () => losses++);
  assert.equal(losses, 1);
});

test("drivers' sockets are found in the own root directory, unless the path would be too long", () => {
  const connected = (path: string, own: string): string => {
    const paths: string[] = [];
    const connect = (_service: unknown, at: string): never => void paths.push(at) as never;
    throughOwnDirectory({ connect }, "/told", own).connect(Node, path, "CSI driver d");
    return String(paths);
  };
  assert.equal(connected("/told/plugins/d/csi.sock", "/own"), "/own/plugins/d/csi.sock");
  for (const path of ["/told/plugins_registry/d.sock", "/run/d/csi.sock"]) assert.equal(connected(path, "/own"), path);
  const [fits, long] = ["x".repeat(107 - "//plugins/d/csi.sock".length), "x".repeat(100)];
  assert.equal(connected("/told/plugins/d/csi.sock", `/${fits}`), `/${fits}/plugins/d/csi.sock`);
  assert.equal(connected("/told/plugins/d/csi.sock", `/${long}`), "/told/plugins/d/csi.sock");
});
