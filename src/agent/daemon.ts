import type { KubeletConfiguration } from "../config/defaults.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import type { ServingSettings } from "../config/serving.ts";
import type { KubeletSettings } from "../config/settings.ts";
import type { CredentialPlugins } from "../images/make-images.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import type { HostAddresses } from "../node/host-addresses.ts";
import type { Logger } from "../ports/log.ts";
import type { RuntimeLayout } from "../private-runtime/layout.ts";
import type { FlightRecorder } from "../replay/flight-recorder.ts";
import type { TrackedCri } from "../runtime-service/deadlines.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import type { NodeCredentials } from "./node-credentials.ts";
import type { AgentPorts } from "./process-start.ts";

/** The kubelet's process after its configuration was read. */
export interface Daemon {
  readonly ports: AgentPorts;
  readonly log: Logger;
  readonly configuration: KubeletConfiguration;
  readonly flags: NodeFlagValues;
  /** Settings of its API server; undefined: none. */
  readonly served: ServingSettings | undefined;
  readonly setVerbosity: (verbosity: number) => void;
  /** Aborts when the process is asked to stop. */
  readonly termination: AbortSignal;
}

/** The parts that are built once its locks are held. */
export interface PreparedDaemon {
  readonly settings: KubeletSettings;
  readonly nodeName: string;
  readonly addresses: HostAddresses;
  readonly rootDirectory: string;
  readonly layout: RuntimeLayout;
  readonly plugins: CredentialPlugins | undefined;
  /** Undefined: standalone. */
  readonly credentials: NodeCredentials | undefined;
  readonly metrics: NodeMetrics;
  readonly recorder: FlightRecorder | undefined;
  /** Also aborts when another process waits for the lock file. */
  readonly termination: AbortSignal;
}

/** A container runtime that answers. */
export interface RuntimeConnection {
  /** `unix://…` */
  readonly endpoint: string;
  /** With deadlines. */
  readonly cri: TrackedCri;
  readonly info: RuntimeInfo;
}
