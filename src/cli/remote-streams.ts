import { ExitCode, PodwrightError } from "../base/errors.ts";
import { openStreams, type Streams, UpgradeRefusedError } from "../linux/streams/stream-client.ts";
import { SocketError } from "../linux/http/unix-client.ts";
import { answeredError } from "../linux/http/api-errors.ts";
import type { CommandContext } from "./context.ts";
import { EngineGone, startRemedy } from "./engine-client.ts";
import type { LocalTerminal } from "./local-terminal.ts";

/** Which streams of a process in a container are connected with this command. */
export interface RemoteStreams {
  readonly path: string;
  /** Where its input comes from; undefined: it gets none. */
  readonly input: AsyncIterable<Uint8Array> | undefined;
  /** A terminal of this command's own that stands for the process's; undefined: it has none. */
  readonly terminal: LocalTerminal | undefined;
}

/** How a process has ended. */
export type RemoteEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "failed"; readonly message: string }
  /** The connection ended without a word. */
  | { readonly kind: "lost" };

type RemoteContext = Pick<CommandContext, "terminal" | "layout">;

const maxStatusBytes = 64 * 1024;

/** Streams of the kubelet's API through the engine's socket. @throws PodwrightError in words for a person */
export async function askForStreams(context: RemoteContext, path: string, protocol: string): Promise<Streams> {
  const { engineSocket, stateDirectory } = context.layout;
  try {
    return await openStreams(engineSocket, path, protocol);
  } catch (error) {
    if (error instanceof UpgradeRefusedError) throw refusal(error);
    if (!(error instanceof SocketError)) throw error;
    throw new EngineGone(`no engine runs for ${stateDirectory}`, { cause: error, remedy: startRemedy(stateDirectory) });
  }
}

function refusal({ status, message }: UpgradeRefusedError): PodwrightError {
  if (message.startsWith("{")) return answeredError(status, message);
  return new PodwrightError(ExitCode.failed, message === "" ? `the engine returned ${status}` : message, {
    remedy: "'podwright ps' lists the pods, 'podwright why POD' explains their state",
  });
}

/** Carries input and output both ways until the process ends or the signal aborts. */
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
    // Input that breaks off is an end of it; that of the process shows on its other streams.
  }
  stdin?.end();
}

/** @param text a Status of the API, as the runtime's streaming server writes it */
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
