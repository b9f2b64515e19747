import { ExitCode, PodwrightError } from "../base/errors.ts";
import { openStreams, type Streams, UpgradeRefusedError } from "../linux/streams/stream-client.ts";
import { SocketError } from "../linux/http/unix-client.ts";
import { answeredError } from "../linux/http/api-errors.ts";
import type { CommandContext } from "./context.ts";
import type { LocalTerminal } from "./local-terminal.ts";
import { ownCommand } from "./own-command.ts";

/** The streams of a container's process that are connected with this command. */
export interface RemoteStreams {
  readonly path: string;
  /** The source of its input; undefined: none. */
  readonly input: AsyncIterable<Uint8Array> | undefined;
  /** This command's terminal, used as the process's; undefined: none. */
  readonly terminal: LocalTerminal | undefined;
}

/** The end of a remote process. */
export type RemoteEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "failed"; readonly message: string }
  /** The connection ended without a status. */
  | { readonly kind: "lost" };

type RemoteContext = Pick<CommandContext, "terminal" | "layout" | "engine">;

const maxStatusBytes = 64 * 1024;

/** Opens streams of the kubelet's API through the engine's socket. @throws PodwrightError */
export async function askForStreams(context: RemoteContext, path: string, protocol: string): Promise<Streams> {
  try {
    return await openStreams(context.layout.engineSocket, path, protocol);
  } catch (error) {
    if (error instanceof UpgradeRefusedError) throw refusal(context, error);
    if (!(error instanceof SocketError)) throw error;
    throw context.engine.gone(error);
  }
}

function refusal({ layout }: RemoteContext, { status, message }: UpgradeRefusedError): PodwrightError {
  if (message.startsWith("{")) return answeredError(status, message);
  const own = (verb: "ps" | "why"): string => ownCommand(layout.stateDirectory, verb);
  return new PodwrightError(ExitCode.failed, message === "" ? `the engine returned ${status}` : message, {
    remedy: `'${own("ps")}' lists the pods, '${own("why")} POD' explains their state`,
  });
}

/** Copies input and output in both directions until the process ends or the signal aborts. */
export async function carryStreams(
  context: RemoteContext,
  { path, input, terminal }: RemoteStreams,
  signal: AbortSignal,
): Promise<RemoteEnd> {
  const { session, head } = await askForStreams(context, path, "v4.channel.k8s.io");
  const status: Uint8Array[] = [];
  let statusBytes = 0;
  const toTerminal = (stream: "stdout" | "stderr") => async (bytes: Uint8Array) => {
    await context.terminal.write(stream, bytes);
  };
  const open = (type: string, sink: (bytes: Uint8Array) => Promise<void> | void = () => {}) =>
    session.open({ streamType: type }, sink);
  open("error", (bytes) => {
    statusBytes += bytes.length;
    if (statusBytes <= maxStatusBytes) status.push(bytes);
  });
  const stdin = input && open("stdin");
  open("stdout", toTerminal("stdout"));
  if (terminal === undefined) open("stderr", toTerminal("stderr"));
  const resize = terminal && open("resize");
  const stop = (): void => session.close();
  signal.addEventListener("abort", stop, { once: true });
  using _sizes = terminal?.onSize((size) => void resize?.write(Buffer.from(`${JSON.stringify(size)}\n`)));
  const over = new AbortController();
  const sending = sendInput(stdin, input, over.signal);
  try {
    await session.run(head);
  } finally {
    signal.removeEventListener("abort", stop);
    over.abort();
    terminal?.[Symbol.dispose]();
  }
  void sending;
  return endOf(Buffer.concat(status).toString("utf8"));
}

async function sendInput(
  stdin: { write(bytes: Uint8Array): Promise<void>; end(): void } | undefined,
  input: AsyncIterable<Uint8Array> | undefined,
  over: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of input ?? []) {
      if (over.aborted) return;
      await stdin?.write(chunk);
    }
  } catch {
    // Failed input counts as its end; the end of the process is read from its other streams.
  }
  stdin?.end();
}

/** @param text an API Status from the runtime's streaming server */
function endOf(text: string): RemoteEnd {
  if (text === "") return { kind: "lost" };
  try {
    const { status, message, reason, details } = JSON.parse(text) as StatusText;
    if (status === "Success") return { kind: "exited", code: 0 };
    const code = Number(details?.causes?.find((cause) => cause.reason === "ExitCode")?.message);
    if (reason === "NonZeroExitCode" && Number.isInteger(code)) return { kind: "exited", code };
    return { kind: "failed", message: message ?? text };
  } catch {
    return { kind: "failed", message: text };
  }
}

interface StatusText {
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}
