import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import { type Check, failed, oneLine, passed } from "../private-runtime/preflight/check.ts";
import { discoverRuntime, type RuntimeInfo } from "../runtime-service/features.ts";

const answerLimitMs = 5000;

/**
 * Checks whether the container runtime answers, and reports itself and its network as ready.
 * @param more further checks of a runtime that answers
 * @param setting where the endpoint is set
 */
export async function checkRuntime(
  cri: Cri,
  clock: Clock,
  endpoint: string,
  more: (runtime: RuntimeInfo) => readonly Check[] = () => [],
  setting = "--runtime-endpoint",
): Promise<Check[]> {
  let runtime: RuntimeInfo;
  try {
    runtime = await withDeadline(clock, "the runtime's response", answerLimitMs, undefined, (signal) => {
      return discoverRuntime(cri, signal);
    });
  } catch (error) {
    const remedy = `start it, and check that ${setting} is its socket`;
    return [failed("runtime", `no usable runtime at ${endpoint}: ${oneLine(errorMessage(error))}`, remedy)];
  }
  const name = `${runtime.name} ${runtime.version}`;
  return [
    runtime.runtimeReady
      ? passed("runtime", `${name} at ${endpoint}`)
      : failed("runtime", `${name} is not ready: ${reason(runtime, "RuntimeReady")}`, "see the runtime's log"),
    runtime.networkReady
      ? passed("pod network", "ready")
      : failed(
          "pod network",
          `not ready: ${reason(runtime, "NetworkReady")}`,
          "install the cluster's network plugin, or a CNI configuration in the runtime's directory (/etc/cni/net.d)",
        ),
    ...more(runtime),
  ];
}

function reason({ conditions }: RuntimeInfo, type: string): string {
  const condition = conditions.find((each) => each.type === type);
  const words = [condition?.reason, condition?.message].filter(Boolean).join(": ");
  return words === "" ? "no reason given" : oneLine(words);
}
