import assert from "node:assert/strict";
import type { ClusterNode } from "./cluster-node.ts";
import { askNode } from "./node-client.ts";

/**
 * The requests that one verb on one subresource of nodes permits, on a node that runs the pod `web` with a container
 * `c`.
 */
const grants: readonly (readonly [verb: string, subresource: string, requests: readonly string[]])[] = [
  ["get", "metrics", ["GET /metrics", "GET /metrics/resource", "GET /metrics/cadvisor"]],
  ["get", "stats", ["GET /stats/summary"]],
  ["get", "healthz", ["GET /healthz"]],
  ["get", "pods", ["GET /pods", "GET /runningpods/"]],
  ["get", "configz", ["GET /configz", "GET /flagz"]],
  ["get", "statusz", ["GET /statusz"]],
  ["get", "log", ["GET /logs/"]],
  ["create", "checkpoint", ["POST /checkpoint/default/none/c"]],
  [
    "get",
    "proxy",
    ["GET /pods", "GET /runningpods/", "GET /healthz", "GET /configz", "GET /containerLogs/default/web/c"],
  ],
  ["create", "proxy", ["POST /run/default/web/c?cmd=true"]],
];

/** With webhook authorization a client may do what was granted and nothing else, by certificate or by token. */
export async function assertFineGrained({ server, node: { apiPort } }: ClusterNode): Promise<void> {
  server.access.allow(({ user, verb, group, resource, subresource, name }) => {
    const isThisNode = group === "" && resource === "nodes" && name === "node1";
    return isThisNode && user.name === `may-${verb}-${subresource}`;
  });
  const everything = [...new Set(grants.flatMap(([, , requests]) => requests))];
  for (const [verb, subresource, granted] of grants) {
    const name = `may-${verb}-${subresource}`;
    const { certificate: cert, key } = server.credentials(name);
    server.access.addToken(`token-of-${name}`, { name, groups: [] });
    for (const request of everything) {
      const expected = !granted.includes(request)
        ? new RegExp(`^403 Forbidden \\(user=${name}, verb=\\w+, resource=nodes, subresource\\(s\\)=\\[`)
        : subresource === "checkpoint"
          ? /^404 pod does not exist/
          : /^200 /;
      assert.match(await askNode(apiPort, request, { cert, key }), expected, `${name}: ${request}`);
      if (!granted.includes(request)) continue;
      const headers = { Authorization: `Bearer token-of-${name}` };
      assert.match(await askNode(apiPort, request, { headers }), expected, `${name} by token: ${request}`);
    }
  }
  for (const request of everything) {
    assert.equal(await askNode(apiPort, request, {}), "401 Unauthorized", request);
    const headers = { Authorization: "Bearer of-nobody" };
    assert.equal(await askNode(apiPort, request, { headers }), "401 Unauthorized", request);
  }
}
