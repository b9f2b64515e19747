import * as z from "zod";
import type { CriRuntimeService } from "../ports/cri.ts";

const Config = z.object({ sandboxImage: z.string().optional() });
const timeoutMs = 30_000;

/**
 * The sandbox image, as the runtime's status reports it: containerd before 1.7 pins no images. Empty if not reported.
 * @throws CriError
 */
export async function sandboxImage(runtime: Pick<CriRuntimeService, "status">, signal: AbortSignal): Promise<string> {
  const { info } = await runtime.status({ verbose: true }, { signal, timeoutMs });
  try {
    return Config.parse(JSON.parse(info["config"] ?? "{}")).sandboxImage ?? "";
  } catch {
    return "";
  }
}
