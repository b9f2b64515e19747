import type { Container } from "../api/container.ts";
import type { Cri } from "../ports/cri.ts";
import { Signal } from "../ports/gen/runtime/v1/api_pb.js";

/** CRI's name of a container's own stop signal (KEP-4960): `SIGRTMIN+1` of the API is `SIGRTMINPLUS1` there. */
export function stopSignalOf(container: Container): Signal {
  const name = container.lifecycle?.stopSignal;
  if (name === undefined) return Signal.RUNTIME_DEFAULT;
  const enumName = name.replace("+", "PLUS").replace(/^SIGRTMAX-/, "SIGRTMAXMINUS");
  return Object.hasOwn(Signal, enumName) ? Signal[enumName as keyof typeof Signal] : Signal.RUNTIME_DEFAULT;
}

/** The API's name of a signal in CRI; undefined: the runtime's choice. */
export function signalName(signal: Signal | undefined): string | undefined {
  if (signal === undefined || signal === Signal.RUNTIME_DEFAULT) return undefined;
  const name = Object.entries(Signal).find(([, value]) => value === signal)?.[0];
  return name?.replace(/PLUS(?=\d)/u, "+").replace(/MINUS(?=\d)/u, "-");
}

/**
 * Whether the runtime will stop a created container with the signal that its spec asks for. One that knows only the
 * image's signal (containerd before 2.3) takes the field and ignores it; its answer then does not show the signal.
 * @throws CriError
 */
export async function honoursStopSignal(cri: Cri, container: Container, id: string): Promise<boolean> {
  const wanted = stopSignalOf(container);
  if (wanted === Signal.RUNTIME_DEFAULT) return true;
  const { status } = await cri.runtime.containerStatus({ containerId: id });
  return status?.stopSignal === wanted;
}
