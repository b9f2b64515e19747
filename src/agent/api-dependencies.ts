import { featureGates } from "../config/feature-gates.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import { servedConfiguration, shownFlags } from "../config/shown-flags.ts";
import { version } from "../base/version.ts";
import type { Node } from "../engine/node.ts";
import { systemCommandOutput } from "../linux/processes/command-output.ts";
import type { NodeApiDependencies } from "../node-api/routes.ts";
import type { Cri } from "../ports/cri.ts";
import type { Ports } from "../ports/ports.ts";

/** The process that the kubelet's API shows. */
export interface ApiSubject {
  /** As it is in use. */
  readonly configuration: KubeletConfiguration;
  readonly flags: NodeFlagValues;
  readonly rootDirectory: string;
  /** Undefined: the log's verbosity is fixed. */
  readonly setVerbosity: ((verbosity: number) => void) | undefined;
}

interface ApiParts {
  readonly ports: Ports;
  readonly cri: Cri;
  readonly subject: ApiSubject;
}

/** Pages enabled by feature gates. */
const gatedPages = [
  ["statusz", "ComponentStatusz"],
  ["flagz", "ComponentFlagz"],
  ["checkpoint", "ContainerCheckpoint"],
] as const;

/**
 * The dependencies of the kubelet API's handlers.
 * @param servesPage whether the node page is served too
 */
export function apiDependencies(
  { ports, cri, subject }: ApiParts,
  node: Node,
  servesPage: boolean,
): NodeApiDependencies {
  const { configuration, flags, rootDirectory, setVerbosity } = subject;
  const gates = featureGates(configuration.featureGates);
  return {
    clock: ports.clock,
    files: ports.files,
    store: ports,
    cri,
    commandOutput: systemCommandOutput,
    pods: () => node.nodePods(),
    desired: () => node.desiredPods(),
    health: () => node.health(),
    surroundings: () => {
      const own = new Set(node.health().map(({ name }) => name));
      return node.localApi.health().checks.filter(({ name }) => !own.has(name));
    },
    configuration: servedConfiguration(configuration),
    flags: shownFlags(configuration, flags),
    withoutPages: gatedPages.filter(([, gate]) => !gates.enabled(gate)).map(([page]) => page),
    otherPaths: servesPage ? ["/ui/"] : [],
    version,
    logsDirectory: "/var/log",
    checkpointDirectory: `${rootDirectory}/checkpoints`,
    debugging: configuration.enableDebuggingHandlers,
    systemLogs: configuration.enableSystemLogHandler,
    systemLogQuery: configuration.enableSystemLogQuery === true,
    profiling: configuration.enableProfilingHandler,
    debugFlags: configuration.enableDebugFlagsHandler,
    setVerbosity,
  };
}
