import type { LogStore } from "../logs/reader.ts";
import type { ApiHandler, ApiResponse } from "../ports/api-server.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { Forward, NodeHandler, NodeRequest } from "../ports/node-server.ts";
import { decodedPath } from "./access.ts";
import { json, plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";
import { checkpoint, runCommand } from "./commands.ts";
import { containerLogs } from "./container-logs.ts";
import { debug, type DebugDependencies } from "./debug.ts";
import { healthz, type HealthDependencies } from "./health.ts";
import { hostLogs } from "./host-logs.ts";
import { containerTarget, logTarget, type NodePod, podTarget } from "./node-pods.ts";
import { desiredPods, runningPods } from "./pod-lists.ts";
import { serviceLogs, type ServiceLogDependencies } from "./service-logs.ts";
import { figurePaths } from "./stats-routes.ts";
import { attach, exec, portForward } from "./streaming.ts";
import type * as Zpages from "./zpages.ts";

/** The YAML writer is loaded on demand. */
const zpages = async (): Promise<typeof Zpages> => await import("./zpages.ts");

export interface NodeApiDependencies extends DebugDependencies, HealthDependencies, ServiceLogDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly store: LogStore;
  readonly cri: Cri;
  /** Pods that are there, also those that no source has any more while they stop: logs and commands reach them. */
  readonly pods: () => readonly NodePod[];
  /** Those that a source has. */
  readonly desired: () => readonly NodePod[];
  /** What `/configz` shows: a KubeletConfiguration. */
  readonly configuration: object;
  /** What `/flagz` shows: values by name. */
  readonly flags: ReadonlyMap<string, string>;
  /** Pages among `statusz` and `flagz` that a feature gate disables. */
  readonly withoutPages: readonly string[];
  /** Paths served outside of these routes, for `/statusz`. */
  readonly otherPaths: readonly string[];
  readonly version: string;
  readonly checkpointDirectory: string;
  /** enableDebuggingHandlers: logs, exec, attach, port-forward, run and the running pods. */
  readonly debugging: boolean;
  /** enableSystemLogHandler. */
  readonly systemLogs: boolean;
  /** enableSystemLogQuery. */
  readonly systemLogQuery: boolean;
}

type Answer = ApiResponse | Forward;

interface Route {
  /** The first segment of its paths. */
  readonly name: string;
  /** Empty: any. */
  readonly methods: readonly string[];
  /** Behaviour without enableDebuggingHandlers, and on the read-only port; default: served. */
  readonly debugging?: "refused" | "absent";
  /** It has no sub-paths. */
  readonly alone?: true;
  /** @param rest the path's segments after the name, decoded */
  readonly handle: (request: NodeRequest, rest: readonly string[]) => Answer | Promise<Answer>;
}

const streamingMethods = ["GET", "POST"];

/** The routes of port 10250 (upstream's pkg/kubelet/server). */
export function nodeApi(deps: NodeApiDependencies): NodeHandler {
  const routes = routesOf(deps);
  return async (request) => await dispatch(routes, deps.debugging, request);
}

/** The routes of port 10255: without authorization, so only pods and health. */
export function readOnlyApi(deps: NodeApiDependencies): ApiHandler {
  const routes = routesOf(deps);
  return async (request) => {
    const answer = await dispatch(routes, false, { ...request, headers: {}, certificate: undefined, upgrade: false });
    return "forwardTo" in answer ? plain(404, "404 page not found\n") : answer;
  };
}

/** Every route, with its methods (none: any). */
export function registeredRoutes(deps: NodeApiDependencies): readonly Pick<Route, "name" | "methods" | "debugging">[] {
  return routesOf(deps).map(({ name, methods, debugging }) => ({ name, methods, ...(debugging && { debugging }) }));
}

function routesOf(deps: NodeApiDependencies): readonly Route[] {
  const startedMs = deps.clock.now();
  const routes: readonly Route[] = [
    { name: "healthz", methods: [], handle: ({ query }, rest) => healthz(deps, rest, query) },
    { name: "pods", methods: ["GET"], alone: true, handle: () => desiredPods(deps.desired()) },
    ...containerRoutes(deps),
    ...nodeRoutes(deps),
    {
      name: "statusz",
      methods: ["GET"],
      debugging: "absent",
      alone: true,
      handle: async (request) => {
        const { statusz } = await zpages();
        const paths = [...routes.map(({ name }) => `/${name}`), ...figurePaths, ...deps.otherPaths];
        return statusz({ startedMs, nowMs: deps.clock.now(), version: deps.version, paths }, request);
      },
    },
  ];
  return routes.filter(({ name }) => !deps.withoutPages.includes(name));
}

/** Routes that read from containers and act on them. */
function containerRoutes(deps: NodeApiDependencies): readonly Route[] {
  const logs = { clock: deps.clock, store: deps.store, pods: deps.pods };
  return [
    {
      name: "containerLogs",
      methods: ["GET"],
      debugging: "refused",
      handle: (request, rest) => containerLogs(logs, logTarget(rest), request.query, request.signal),
    },
    {
      name: "exec",
      methods: streamingMethods,
      debugging: "refused",
      handle: (request, rest) => exec(deps, containerTarget(rest), request),
    },
    {
      name: "attach",
      methods: streamingMethods,
      debugging: "refused",
      handle: (request, rest) => attach(deps, containerTarget(rest), request),
    },
    {
      name: "portForward",
      methods: streamingMethods,
      debugging: "refused",
      handle: (request, rest) => portForward(deps, podTarget(rest), request),
    },
    {
      name: "run",
      methods: ["POST"],
      debugging: "refused",
      handle: (request, rest) => runCommand(deps, containerTarget(rest), request),
    },
    {
      name: "runningpods",
      methods: ["GET"],
      debugging: "refused",
      alone: true,
      handle: () => runningPods(deps.pods()),
    },
    {
      name: "checkpoint",
      methods: ["POST"],
      debugging: "absent",
      handle: (request, rest) => checkpoint(deps, logTarget(rest), request),
    },
  ];
}

/** Routes about the node and podwright itself. */
function nodeRoutes(deps: NodeApiDependencies): readonly Route[] {
  return [
    {
      name: "configz",
      methods: ["GET"],
      debugging: "absent",
      alone: true,
      handle: () => json({ kubeletconfig: deps.configuration }),
    },
    {
      name: "flagz",
      methods: ["GET"],
      debugging: "absent",
      alone: true,
      handle: async (request) => (await zpages()).flagz(deps.flags, request),
    },
    {
      name: "logs",
      methods: ["GET"],
      debugging: "refused",
      handle: async ({ query, signal }, rest) => {
        if (!deps.systemLogs) throw new ApiError(405, "logs endpoint is disabled.\n");
        const queried = deps.systemLogQuery ? await serviceLogs(deps, query, signal) : undefined;
        return queried ?? (await hostLogs(deps.files, deps.logsDirectory, rest));
      },
    },
    { name: "debug", methods: [], debugging: "refused", handle: (request, rest) => debug(deps, rest, request) },
  ];
}

async function dispatch(routes: readonly Route[], debugging: boolean, request: NodeRequest): Promise<Answer> {
  // Split before decoding, so that an encoded slash is part of a name. The decoded path was authorized, and a name
  // cannot become another path's first segment.
  const [name = "", ...rest] = request.path.slice(1).split("/").map(decodedPath);
  const route = routes.find((candidate) => candidate.name === name);
  const isAbsent = route === undefined || (!debugging && route.debugging === "absent");
  const isBelow = route?.alone === true && rest.some((part) => part !== "");
  if (isAbsent || isBelow || rest.includes(undefined)) return plain(404, "404 page not found\n");
  if (!debugging && route.debugging === "refused") return plain(405, "Debug endpoints are disabled.\n");
  if (route.methods.length > 0 && !route.methods.includes(request.method)) {
    return plain(405, "405: Method Not Allowed", { Allow: route.methods.join(", ") });
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
