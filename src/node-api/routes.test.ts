import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { nodeApiDeps, nodeRequest } from "../../test/support/node-api.ts";
import { silentLog } from "../../test/support/sources.ts";
import type { ApiCall } from "../api-client/client.ts";
import type { ApiObject } from "../api-client/resource.ts";
import { systemRandom } from "../linux/processes/random.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { NodeHandler, NodeRequest } from "../ports/node-server.ts";
import { type Authorizer, withAccess } from "./access.ts";
import { byCertificate } from "./authenticators.ts";
import { byAccessReview } from "./reviews.ts";
import { nodeApi, readOnlyApi, registeredRoutes } from "./routes.ts";
import { type NodeFigures, withFigures } from "./stats-routes.ts";

/** A route from a client's point of view. */
interface Row {
  readonly name: string;
  /** Method and path, with the status for an authorized client. */
  readonly requests: readonly (readonly [string, string, number])[];
  /** Subresources of nodes, one of which suffices. */
  readonly subresources: readonly string[];
  /** Status of the first request on the read-only port, and on a node without debugging handlers. */
  readonly readOnly: number;
}

const target = "default/web/app";
const withUid = "default/web/uid-1/app";
const streams = "output=1&command=id";

/** Every route of the kubelet's API: a registered route that is missing here fails the test. */
const table: readonly Row[] = [
  {
    name: "healthz",
    requests: [
      ["GET", "/healthz", 200],
      ["HEAD", "/healthz", 200],
      ["POST", "/healthz", 200],
      ["GET", "/healthz/ping", 200],
      ["GET", "/healthz/log", 200],
      ["GET", "/healthz/syncloop", 200],
      ["GET", "/healthz/pleg", 200],
      ["GET", "/healthz/none", 404],
    ],
    subresources: ["healthz", "proxy"],
    readOnly: 200,
  },
  {
    name: "pods",
    requests: [
      ["GET", "/pods", 200],
      ["GET", "/pods/", 200],
      ["GET", "/pods/default", 404],
      ["POST", "/pods", 405],
      ["DELETE", "/pods", 405],
    ],
    subresources: ["pods", "proxy"],
    readOnly: 200,
  },
  {
    name: "runningpods",
    requests: [
      ["GET", "/runningpods/", 200],
      ["GET", "/runningpods/default", 404],
      ["PUT", "/runningpods/", 405],
    ],
    subresources: ["pods", "proxy"],
    readOnly: 405,
  },
  {
    name: "containerLogs",
    requests: [
      ["GET", `/containerLogs/${target}`, 200],
      ["GET", `/containerLogs/${withUid}`, 404],
      ["POST", `/containerLogs/${target}`, 405],
    ],
    subresources: ["proxy"],
    readOnly: 405,
  },
  {
    name: "exec",
    requests: [
      ["POST", `/exec/${target}?${streams}`, 101],
      ["GET", `/exec/${target}?${streams}`, 101],
      ["POST", `/exec/${withUid}?${streams}`, 101],
      ["GET", `/exec/${withUid}?${streams}`, 101],
      ["POST", `/exec/default/web/uid-2/app?${streams}`, 404],
      ["DELETE", `/exec/${target}?${streams}`, 405],
    ],
    subresources: ["proxy"],
    readOnly: 405,
  },
  {
    name: "attach",
    requests: [
      ["POST", `/attach/${target}?output=1`, 101],
      ["GET", `/attach/${withUid}?output=1`, 101],
      ["PATCH", `/attach/${target}?output=1`, 405],
    ],
    subresources: ["proxy"],
    readOnly: 405,
  },
  {
    name: "portForward",
    requests: [
      ["POST", "/portForward/default/web", 101],
      ["GET", "/portForward/default/web/uid-1?port=80", 101],
      ["PUT", "/portForward/default/web", 405],
    ],
    subresources: ["proxy"],
    readOnly: 405,
  },
  {
    name: "run",
    requests: [
      ["POST", `/run/${target}?cmd=id`, 200],
      ["POST", `/run/${withUid}?cmd=id`, 200],
      ["GET", `/run/${target}?cmd=id`, 405],
    ],
    subresources: ["proxy"],
    readOnly: 405,
  },
  {
    name: "checkpoint",
    requests: [
      ["POST", `/checkpoint/${target}`, 200],
      ["GET", `/checkpoint/${target}`, 405],
    ],
    subresources: ["checkpoint"],
    readOnly: 404,
  },
  {
    name: "configz",
    requests: [
      ["GET", "/configz", 200],
      ["GET", "/configz/kubeletconfig", 404],
      ["PUT", "/configz", 405],
    ],
    subresources: ["configz", "proxy"],
    readOnly: 404,
  },
  {
    name: "flagz",
    requests: [
      ["GET", "/flagz", 200],
      ["POST", "/flagz", 405],
    ],
    subresources: ["configz"],
    readOnly: 404,
  },
  {
    name: "statusz",
    requests: [
      ["GET", "/statusz", 200],
      ["POST", "/statusz", 405],
    ],
    subresources: ["statusz"],
    readOnly: 404,
  },
  {
    name: "logs",
    requests: [
      ["GET", "/logs/", 200],
      ["GET", "/logs/syslog", 200],
      ["GET", "/logs/?query=/syslog", 200],
      ["GET", "/logs", 301],
      ["GET", "/logs/pods", 301],
      ["GET", "/logs/pods/", 200],
      ["GET", "/logs/none", 404],
      ["PUT", "/logs/syslog", 405],
    ],
    subresources: ["log"],
    readOnly: 405,
  },
  {
    name: "debug",
    requests: [
      ["PUT", "/debug/flags/v", 200],
      ["GET", "/debug/flags/v", 406],
      ["GET", "/debug/pprof/", 501],
      ["GET", "/debug/pprof/heap", 501],
      ["GET", "/debug/none", 404],
    ],
    subresources: ["proxy"],
    readOnly: 405,
  },
  {
    name: "stats",
    requests: [
      ["GET", "/stats/summary", 200],
      ["GET", "/stats/summary?only_cpu_and_memory=true", 200],
      ["POST", "/stats/summary", 200],
      ["PUT", "/stats/summary", 405],
      ["DELETE", "/stats/summary", 405],
      ["GET", "/stats/", 404],
      ["POST", "/stats/container", 404],
      ["GET", "/stats/default/web/uid-1/app", 404],
    ],
    subresources: ["stats"],
    readOnly: 200,
  },
  {
    name: "metrics",
    requests: [
      ["GET", "/metrics", 200],
      ["GET", "/metrics/cadvisor", 200],
      ["GET", "/metrics/resource", 200],
      ["GET", "/metrics/probes", 200],
      ["GET", "/metrics/slis", 200],
      ["DELETE", "/metrics/slis", 200],
      ["POST", "/metrics", 405],
      ["DELETE", "/metrics/resource", 405],
      ["PATCH", "/metrics/slis", 405],
      ["GET", "/metrics/resource/v1alpha1", 404],
      ["GET", "/metrics/none", 404],
    ],
    subresources: ["metrics"],
    readOnly: 200,
  },
];

const none = async (): Promise<[]> => [];
const figures: NodeFigures = {
  summary: async () => ({ node: { nodeName: "node1", startTime: "" }, pods: [] }),
  families: {
    "/metrics": none,
    "/metrics/cadvisor": none,
    "/metrics/resource": none,
    "/metrics/probes": none,
    "/metrics/slis": none,
  },
  resetSlis: () => {},
};

const verbs: Readonly<Record<string, string>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};
const jane = { certificate: { commonName: "jane", organizations: [], uids: [], sha256: "0a1b" } };

/** The status of a request by an authenticated client; `101` when the runtime's streams respond. */
async function status(handler: NodeHandler, request: NodeRequest): Promise<number> {
  const answer = await handler(request);
  return "forwardTo" in answer ? 101 : answer.status;
}

function asked(method: string, path: string, more: Partial<NodeRequest> = {}): NodeRequest {
  const upgrade = /^\/(?:exec|attach|portForward)\//.test(path);
  return nodeRequest(method, path, { upgrade, body: async () => "4", ...more });
}

const packing = { gzipText: async (text: string): Promise<Uint8Array> => Buffer.from(`packed:${text}`) };

/** An API server that authorizes some subresources, and records the reviews. */
function reviewing(granted: readonly string[]) {
  const reviews: object[] = [];
  const client = {
    create: async <T extends ApiObject>({ resource }: ApiCall<T>, object: object): Promise<T> => {
      const { spec } = object as { readonly spec: { readonly resourceAttributes: { readonly subresource: string } } };
      reviews.push(spec);
      return resource.decode({ status: { allowed: granted.includes(spec.resourceAttributes.subresource) } });
    },
  };
  const deps = { client, clock: new ManualClock(), random: systemRandom };
  return { reviews, authorize: byAccessReview(deps, "node1", { allowedMs: 1, deniedMs: 1 }) };
}

describe("the kubelet API", async () => {
  const deps = await nodeApiDeps();
  const api = withFigures(figures, packing, nodeApi(deps));

  it("has a row in the table for every route", () => {
    assert.deepEqual(
      table.map(({ name }) => name).toSorted(),
      [...registeredRoutes(deps).map(({ name }) => name), "metrics", "stats"].toSorted(),
    );
  });

  it("lists metrics on its status page, too", async () => {
    const answer = await api(asked("GET", "/statusz"));
    assert.ok("body" in answer && typeof answer.body === "string");
    const told = /^Paths: (.*)$/m.exec(answer.body)?.[1]?.split(" ") ?? [];
    const missing = [...Object.keys(figures.families), "/stats/summary"].filter((path) => !told.includes(path));
    assert.deepEqual(missing, []);
    assert.ok(!told.includes("/ui/"));
    const withPage = nodeApi(await nodeApiDeps({ otherPaths: ["/ui/"] }));
    const longer = await withPage(asked("GET", "/statusz"));
    assert.ok("body" in longer && typeof longer.body === "string");
    assert.match(longer.body, /^Paths: .* \/ui\/$/m);
  });

  for (const { name, requests, subresources, readOnly } of table) {
    for (const [method, path, expected] of requests) {
      const verb = verbs[method] ?? "";
      const guarded = (granted: readonly string[]): NodeHandler => {
        const may: Authorizer = async (_who, what) => {
          return what.verb === verb && what.subresources.some((each) => granted.includes(each));
        };
        return withAccess(api, [byCertificate], may, silentLog);
      };
      it(`${method} ${path}: ${expected} to whom may, 403 to others, 401 to strangers`, async () => {
        assert.equal(await status(guarded(subresources), asked(method, path)), 401);
        for (const granted of subresources) {
          assert.equal(await status(guarded([granted]), asked(method, path, jane)), expected, granted);
        }
        const all = ["pods", "healthz", "configz", "stats", "log", "metrics", "proxy", "checkpoint", "statusz"];
        const others = all.filter((each) => !subresources.includes(each));
        const answer = await guarded(others)(asked(method, path, jane));
        assert.ok("status" in answer);
        assert.deepEqual(
          [answer.status, answer.body],
          [403, `Forbidden (user=jane, verb=${verb}, resource=nodes, subresource(s)=[${subresources.join(" ")}])`],
        );
      });

      it(`${method} ${path}: the API server is asked for ${subresources.join(", then ")}, and its yes suffices`, async () => {
        const review = (subresource: string): object => {
          const resourceAttributes = { verb, version: "v1", resource: "nodes", name: "node1", subresource };
          const extra = { "authentication.kubernetes.io/credential-id": ["X509SHA256=0a1b"] };
          return { user: "jane", groups: ["system:authenticated"], extra, resourceAttributes };
        };
        for (const granted of [undefined, ...subresources]) {
          const { reviews, authorize } = reviewing(granted === undefined ? [] : [granted]);
          const handler = withAccess(api, [byCertificate], authorize, silentLog);
          assert.equal(await status(handler, asked(method, path)), 401);
          assert.deepEqual(reviews, [], "nobody is asked about a stranger");
          assert.equal(await status(handler, asked(method, path, jane)), granted === undefined ? 403 : expected);
          const last = granted === undefined ? subresources.length : subresources.indexOf(granted) + 1;
          assert.deepEqual(reviews, subresources.slice(0, last).map(review));
        }
      });
    }

    const [method = "", path = ""] = requests[0] ?? [];
    it(`${name}: ${readOnly} on the read-only port and without debugging handlers`, async () => {
      const plain = withFigures(figures, packing, readOnlyApi(deps));
      assert.equal(await status(plain, nodeRequest(method, path)), readOnly);
      const careful = withFigures(figures, packing, nodeApi({ ...deps, debugging: false }));
      assert.equal(await status(careful, asked(method, path)), readOnly);
    });
  }
});

test("lists the pods that a source has, on the read-only port too, and reaches those that still stop", async () => {
  const deps = await nodeApiDeps({ desired: () => [] });
  for (const handler of [nodeApi(deps), readOnlyApi(deps)]) {
    const answer = await handler(nodeRequest("GET", "/pods"));
    assert.ok("body" in answer && typeof answer.body === "string");
    assert.match(answer.body, /"items":\[\]/);
  }
  assert.equal(await status(nodeApi(deps), nodeRequest("GET", `/containerLogs/${target}`)), 200);
});

test("does not serve paths that upstream has removed", async () => {
  const handler = nodeApi(await nodeApiDeps());
  for (const path of ["/", "/spec/", "/cri/", "/getLogs", "/validate/podspec", "/podresources", "/exec", "/Pods"]) {
    assert.equal(await status(handler, nodeRequest("GET", path)), 404, path);
  }
});

test("does not serve pages whose feature is off", async () => {
  const handler = nodeApi(await nodeApiDeps({ withoutPages: ["statusz", "flagz", "checkpoint"] }));
  for (const [method, path] of [
    ["GET", "/statusz"],
    ["GET", "/flagz"],
    ["POST", `/checkpoint/${target}`],
  ] as const) {
    assert.equal(await status(handler, nodeRequest(method, path)), 404, path);
  }
});
