import type { ApiResponse } from "../ports/api-server.ts";
import type { NodeRequest } from "../ports/node-server.ts";
import { plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";

export interface DebugDependencies {
  /** enableProfilingHandler. */
  readonly profiling: boolean;
  /** enableDebugFlagsHandler. */
  readonly debugFlags: boolean;
  /** Sets the log verbosity, as `-v` does; undefined where that is fixed. */
  readonly setVerbosity: ((verbosity: number) => void) | undefined;
}

/**
 * `/debug/flags/v` (PUT an integer: the log verbosity) and `/debug/pprof/…`, which is not available because podwright
 * is not a Go program.
 * @throws ApiError
 */
export async function debug(
  { profiling, debugFlags, setVerbosity }: DebugDependencies,
  rest: readonly string[],
  request: NodeRequest,
): Promise<ApiResponse> {
  if (rest[0] === "pprof") {
    if (!profiling) throw new ApiError(405, "profiling endpoint is disabled.\n");
    throw new ApiError(
      501,
      "podwright is not a Go program and has no pprof profiles; send SIGUSR1 to its process and connect a debugger of " +
        "Node.js to 127.0.0.1:9229 on the node instead\n",
    );
  }
  if (rest.join("/") !== "flags/v") throw new ApiError(404, "404 page not found\n");
  if (!debugFlags || setVerbosity === undefined) throw new ApiError(405, "flags endpoint is disabled.\n");
  if (request.method !== "PUT") throw new ApiError(406, "unsupported http method\n");
  const text = await request.body();
  if (!/^\d{1,9}$/.test(text)) {
    throw new ApiError(400, `failed to set logging.verbosity: ${JSON.stringify(text.slice(0, 64))} is not a number\n`);
  }
  setVerbosity(Number(text));
  return plain(200, `successfully set klog.logging.verbosity to ${text}\n`);
}
