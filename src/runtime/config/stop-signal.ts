import type { Container } from "../../api/container.ts";
import type { Cri } from "../../ports/cri.ts";
import { Signal } from "../../ports/gen/runtime/v1/api_pb.js";

/** Key of the stop signal in a container's runtime configuration (OCI image specification). */
const stopSignalAnnotation = "org.opencontainers.image.stopSignal";

/** Linux signals by number, starting at 1. */
const numbered =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS";
const [firstRealTime, lastRealTime] = [34, 64];
/** From here on real-time signals are counted down from the last. */
const countedDownFrom = 50;

/** CRI's name of a container's own stop signal (KEP-4960): the API's `SIGRTMIN+1` is `SIGRTMINPLUS1`. */
export function stopSignalOf(container: Container): Signal {
  const name = container.lifecycle?.stopSignal;
  return name === undefined ? Signal.RUNTIME_DEFAULT : signalOf(name);
}

/** The API's name of a CRI signal; undefined: the runtime's default. */
export function signalName(signal: Signal | undefined): string | undefined {
  if (signal === undefined || signal === Signal.RUNTIME_DEFAULT) return undefined;
  const name = Object.entries(Signal).find(([, value]) => value === signal)?.[0];
  return name?.replace(/PLUS(?=\d)/u, "+").replace(/MINUS(?=\d)/u, "-");
}

/**
 * Whether the runtime will use the spec's stop signal for a created container. A runtime that only knows the image's
 * signal (containerd before 2.3) ignores the field, and does not report the signal. CRI-O honours it and shows it only
 * in the container's runtime configuration.
 * @throws CriError
 */
export async function honoursStopSignal(cri: Cri, container: Container, id: string): Promise<boolean> {
  const wanted = stopSignalOf(container);
  if (wanted === Signal.RUNTIME_DEFAULT) return true;
  const { status, info } = await cri.runtime.containerStatus({ containerId: id, verbose: true });
  return status?.stopSignal === wanted || configuredSignal(info) === wanted;
}

/**
 * The stop signal in a verbose ContainerStatus: JSON whose `runtimeSpec` has annotations. The content is untrusted:
 * anything unexpected is ignored.
 */
export function configuredSignal(info: Readonly<Record<string, string>>): Signal {
  const annotations = member(member(parsed(info["info"]), "runtimeSpec"), "annotations");
  const name = member(annotations, stopSignalAnnotation);
  return typeof name === "string" ? signalOf(name) : Signal.RUNTIME_DEFAULT;
}

/** By name (`SIGUSR1`, `USR1`, `SIGRTMIN+1`, `SIGRTMINPLUS1`) or Linux number; the runtime's default for other text. */
function signalOf(text: string): Signal {
  const name = text
    .toUpperCase()
    .replace(/^(?!SIG)(?=[A-Z])/u, "SIG")
    .replace(/^SIGRTMIN\+/u, "SIGRTMINPLUS")
    .replace(/^SIGRTMAX-/u, "SIGRTMAXMINUS");
  const known = /^[1-9]\d?$/u.test(name) ? nameOfNumber(Number(name)) : name;
  return Object.hasOwn(Signal, known) && known.startsWith("SIG")
    ? Signal[known as keyof typeof Signal]
    : Signal.RUNTIME_DEFAULT;
}

function nameOfNumber(number: number): string {
  if (number === firstRealTime) return "SIGRTMIN";
  if (number === lastRealTime) return "SIGRTMAX";
  if (number < firstRealTime) return `SIG${numbered.split(" ")[number - 1] ?? ""}`;
  return number < countedDownFrom ? `SIGRTMINPLUS${number - firstRealTime}` : `SIGRTMAXMINUS${lastRealTime - number}`;
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}
