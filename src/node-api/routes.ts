import type { LogStore } from "../logs/reader.ts";
import type { ApiHandler, ApiResponse } from "../ports/api-server.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { Forward, NodeHandler, NodeRequest } from "../ports/node-server.ts";
import type { HealthzCheck } from "../server/healthz.ts";
import { decodedPath } from "./access.ts";
import { json, plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";
import { checkpoint, runCommand } from "./commands.ts";
import { containerLogs } from "./container-logs.ts";
import { healthz } from "./health.ts";
import { hostLogs } from "./host-logs.ts";
import { containerTarget, type NodePod, podTarget } from "./node-pods.ts";
import { desiredPods, runningPods } from "./pod-lists.ts";
import { attach, exec, portForward } from "./streaming.ts";

export interface NodeApiDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly store: LogStore;
  readonly cri: Cri;
  readonly pods: () => readonly NodePod[];
  readonly health: () => readonly HealthzCheck[];
  /** What `/configz` shows: a KubeletConfiguration. */
  readonly configuration: object;
  readonly version: string;
  /** Where `/logs/` looks. */
  readonly logsDirectory: string;
  readonly checkpointDirectory: string;
  /** enableDebuggingHandlers: logs, exec, attach, port-forward, run and the running pods. */
  readonly debugging: boolean;
  /** enableSystemLogHandler. */
  readonly systemLogs: boolean;
}

type Answer = ApiResponse | Forward;

interface Route {
  readonly name: string;
  /** Served to everybody on the read-only port. */
  readonly readOnly?: true;
  readonly methods: readonly string[];
  readonly debugging?: true;
  /** @param rest the path's segments after the name, decoded */
  readonly handle: (request: NodeRequest, rest: readonly string[]) => Answer | Promise<Answer>;
}

const streamingMethods = ["GET", "POST"];

/** What port 10250 serves (upstream's pkg/kubelet/server). */
export function nodeApi(deps: NodeApiDependencies): NodeHandler {
  const routes = routesOf(deps);
  return async (request) => await dispatch(routes, deps.debugging, request);
}

/** What port 10255 serves: no access is asked for, so nothing that acts or that shows more than pods and health. */
export function readOnlyApi(deps: NodeApiDependencies): ApiHandler {
  const routes = routesOf(deps).filter((route) => route.readOnly === true || route.debugging === true);
  return async (request) => {
    const answer = await dispatch(routes, false, { ...request, headers: {}, certificate: undefined, upgrade: false });
    return "forwardTo" in answer ? plain(404, "404 page not found\n") : answer;
  };
}

function routesOf(deps: NodeApiDependencies): readonly Route[] {
  const startedMs = deps.clock.now();
  const logs = { clock: deps.clock, store: deps.store, pods: deps.pods };
  return [
    { name: "healthz", readOnly: true, methods: [], handle: ({ query }, rest) => healthz(deps.health(), rest, query) },
    { name: "pods", readOnly: true, methods: ["GET"], handle: () => desiredPods(deps.pods()) },
    { name: "configz", methods: ["GET"], handle: () => json({ kubeletconfig: deps.configuration }) },
    { name: "statusz", methods: ["GET"], handle: () => page("kubelet statusz", status(deps, startedMs), ": ") },
    {
      name: "containerLogs",
      methods: ["GET"],
      debugging: true,
      handle: (request, rest) => containerLogs(logs, containerTarget(rest), request.query, request.signal),
    },
    {
      name: "exec",
      methods: streamingMethods,
      debugging: true,
      handle: (request, rest) => exec(deps, containerTarget(rest), request),
    },
    {
      name: "attach",
      methods: streamingMethods,
      debugging: true,
      handle: (request, rest) => attach(deps, containerTarget(rest), request),
    },
    {
      name: "portForward",
      methods: streamingMethods,
      debugging: true,
      handle: (request, rest) => portForward(deps, podTarget(rest), request),
    },
    {
      name: "run",
      methods: ["POST"],
      debugging: true,
      handle: (request, rest) => runCommand(deps, containerTarget(rest), request),
    },
    { name: "runningpods", methods: ["GET"], debugging: true, handle: () => runningPods(deps.pods()) },
    {
      name: "checkpoint",
      methods: ["POST"],
      handle: (request, rest) => checkpoint(deps, containerTarget(rest), request),
    },
    {
      name: "logs",
      methods: ["GET"],
      debugging: true,
      handle: (_request, rest) => {
        if (!deps.systemLogs) throw new ApiError(405, "logs endpoint is disabled.\n");
        return hostLogs(deps.files, deps.logsDirectory, rest);
      },
    },
  ];
}

async function dispatch(routes: readonly Route[], debugging: boolean, request: NodeRequest): Promise<Answer> {
  // Divided before it is decoded, so that an encoded slash is part of a name; access was asked for the decoded path,
  // and a name cannot become another path's first segment.
  const [name = "", ...rest] = request.path.slice(1).split("/").map(decodedPath);
  const route = routes.find((candidate) => candidate.name === name);
  if (route === undefined || rest.includes(undefined)) return plain(404, "404 page not found\n");
  if (route.debugging === true && !debugging) return plain(405, "Debug endpoints are disabled.\n");
  if (route.methods.length > 0 && !route.methods.includes(request.method)) {
    return { ...plain(405, "405: Method Not Allowed"), headers: { Allow: route.methods.join(", ") } };
  }
  try {
    return await route.handle(
      request,
      rest.map((part) => part ?? ""),
    );
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return plain(error.status, error.message);
  }
}

function page(title: string, values: Readonly<Record<string, string>>, divider: string): ApiResponse {
  const lines = Object.entries(values).map(([name, value]) => `${name}${divider}${value}\n`);
  return plain(200, `\n${title}\nWarning: This endpoint is not meant to be machine parseable.\n\n${lines.join("")}`);
}

function status({ clock, version }: NodeApiDependencies, startedMs: number): Record<string, string> {
  return {
    Started: new Date(startedMs).toISOString(),
    Up: `${Math.floor((clock.now() - startedMs) / 1000)} s`,
    Version: version,
    Paths: "/configz /healthz /statusz",
  };
}
