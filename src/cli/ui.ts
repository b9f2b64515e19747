import { ExitCode, PodwrightError } from "../base/errors.ts";
import { answeredError } from "../linux/http/api-errors.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { pageAssets } from "../linux/http/page-assets.ts";
import { servePage } from "../linux/servers/page-server.ts";
import { systemRandom } from "../linux/processes/random.ts";
import { SocketError, type UnixTransport, unixTransport } from "../linux/http/unix-client.ts";
import { PageGuard } from "../page/guard.ts";
import { pageFiles, pageHeaders } from "../page/routes.ts";
import type { ApiErrorBody, ApiHandler, ApiRequest, ApiResponse } from "../ports/api-server.ts";
import type { MachineContext } from "./machine-context.ts";
import { type EngineClient, EngineGone } from "./engine-client.ts";
import { Interrupts } from "./interrupts.ts";
import { remedyAsTyped } from "./own-command.ts";

export interface UiOptions {
  readonly port?: number;
}

/**
 * `podwright ui`: serves the node page to one browser of this machine until Ctrl-C. Its data come from the engine's socket;
 * the engine may end and return meanwhile.
 */
export async function uiCommand(context: MachineContext, { port = 0 }: UiOptions): Promise<ExitCode> {
  const { terminal, layout, engine } = context;
  using interrupts = new Interrupts(process, terminal.closed);
  await engine.health().catch((error: unknown) => {
    if (!(error instanceof EngineGone)) throw error;
    terminal.warn(terminal.warnPaint.caution(`podwright: ${error.message}; the page will show its pods once one runs`));
  });
  const data = fromEngine(unixTransport(layout.engineSocket), engine);
  let guard: PageGuard | undefined;
  await using server = await servePage(port, (ownPort) => {
    const hosts = [`127.0.0.1:${ownPort}`, `localhost:${ownPort}`];
    guard = new PageGuard({ files: pageFiles(pageAssets), data, random: systemRandom, hashing: systemHashing, hosts });
    return guard.handle;
  });
  terminal.print(`http://127.0.0.1:${server.port}/ui/#code=${guard?.code ?? ""}`);
  terminal.warn(terminal.warnPaint.faint("The link works once. Ctrl-C ends the session."));
  const { promise, resolve } = Promise.withResolvers<void>();
  interrupts.first.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  return ExitCode.done;
}

/** Forwards requests to the engine. A missing engine is a regular response: the page shows it, and retries. */
function fromEngine(transport: UnixTransport, engine: Pick<EngineClient, "gone">): ApiHandler {
  return async (request) => {
    const isStream = request.path.endsWith("/events");
    try {
      if (isStream) return await streamed(transport, request);
      const { status, contentType, body } = await transport.request("GET", request.path, { signal: request.signal });
      return { status, contentType, headers: pageHeaders, body };
    } catch (error) {
      request.signal.throwIfAborted();
      const problem = JSON.stringify(failure(error, engine));
      // Not an error status, which would appear on the browser's console as the page's error.
      if (isStream) return eventStream(`event: problem\ndata: ${problem}\n\n`);
      return { status: 503, contentType: "application/json", headers: pageHeaders, body: problem };
    }
  };
}

async function streamed(transport: UnixTransport, { path, signal }: ApiRequest): Promise<ApiResponse> {
  const lines = transport.lines(path, { signal })[Symbol.asyncIterator]();
  // Awaited before the response begins: afterwards no error status is possible.
  const first = await lines.next();
  async function* body(): AsyncGenerator<string> {
    try {
      for (let next = first; next.done !== true; next = await lines.next()) yield `${next.value}\n`;
    } catch {
      // The engine stopped: the page sees the end, and reconnects.
    } finally {
      await lines.return?.();
    }
  }
  return eventStream(body());
}

function eventStream(body: ApiResponse["body"]): ApiResponse {
  return { status: 200, contentType: "text/event-stream", headers: pageHeaders, body };
}

function failure(error: unknown, engine: Pick<EngineClient, "gone">): ApiErrorBody {
  const { message, remedy = "" } = error instanceof SocketError ? engine.gone(error) : asError(error);
  return {
    error: `${message.replace(/^./, (first) => first.toUpperCase())}.`,
    ...(remedy !== "" && { remedy: `${remedyAsTyped(remedy)}.` }),
  };
}

function asError(error: unknown): PodwrightError {
  return error instanceof PodwrightError ? error : answeredError(500, String(error));
}
