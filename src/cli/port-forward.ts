import type { Socket } from "node:net";
import type { Pod } from "../api/pod.ts";
import { onAbort } from "../base/abort.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { type Listener, listenTcp } from "../linux/streams/stream-client.ts";
import type { CommandContext } from "./context.ts";
import { Interrupts } from "./interrupts.ts";
import { askForStreams } from "./remote-streams.ts";
import { remotePath, remotePod } from "./remote-target.ts";

export interface PortForwardOptions {
  /** Addresses of this machine, comma-separated; `localhost` means both loopback addresses. */
  readonly address: string;
}

/** Errors arrive on their own stream, which may end after the data's. */
const lastWordMs = 5000;

interface ForwardedPort {
  /** 0: any free one. */
  readonly local: number;
  readonly remote: number;
}

/** `podwright port-forward POD [LOCAL:]REMOTE…`: forwards ports of this machine to ports of a pod, until Ctrl-C. */
export async function portForwardCommand(
  context: CommandContext,
  selector: string,
  ports: readonly string[],
  { address }: PortForwardOptions,
): Promise<ExitCode> {
  const { terminal } = context;
  const pod = await remotePod(context, selector);
  const wanted = ports.map((text) => forwardedPort(text, pod));
  const hosts = address.split(",").flatMap((host) => (host === "localhost" ? ["127.0.0.1", "::1"] : [host]));
  using interrupts = new Interrupts(process, terminal.closed);
  const listeners: Listener[] = [];
  try {
    for (const port of wanted) listeners.push(...(await listen(context, pod, port, hosts)));
    const ended = Promise.withResolvers<void>();
    using _end = onAbort(interrupts.first, ended.resolve);
    await ended.promise;
  } finally {
    for (const listener of listeners) listener.close();
  }
  return ExitCode.done;
}

/** Parses `80`, `8080:80` or `:80`; the remote one may be the name of a container's port. @throws PodwrightError (bad input) */
export function forwardedPort(text: string, pod: Pod): ForwardedPort {
  const [first = "", second, ...more] = text.split(":");
  const bad = (what: string): PodwrightError =>
    new PodwrightError(ExitCode.badInput, `${JSON.stringify(text)}: ${what}`, {
      remedy: "a port is REMOTE, LOCAL:REMOTE, or :REMOTE for a free local one",
    });
  if (more.length > 0) throw bad("too many colons");
  const name = second ?? first;
  const named = pod.spec.containers.flatMap(({ ports = [] }) => ports).find((port) => port.name === name);
  const remote = portNumber(name) ?? named?.containerPort;
  if (remote === undefined || remote === 0) throw bad(`pod ${pod.metadata.name} has no port ${JSON.stringify(name)}`);
  const local = second === undefined ? (portNumber(first) ?? remote) : first === "" ? 0 : portNumber(first);
  if (local === undefined) throw bad(`${JSON.stringify(first)} is not a port`);
  return { local, remote };
}

function portNumber(text: string): number | undefined {
  const value = /^\d{1,5}$/.test(text) ? Number(text) : 65_536;
  return value <= 65_535 ? value : undefined;
}

/** Listens at each address; of several, those that this machine lacks are skipped. */
async function listen(
  context: CommandContext,
  pod: Pod,
  { local, remote }: ForwardedPort,
  hosts: readonly string[],
): Promise<Listener[]> {
  const { terminal } = context;
  const listeners: Listener[] = [];
  let problem: unknown;
  let port = local;
  for (const host of hosts) {
    try {
      const listener = await listenTcp(host, port, (connection) => {
        terminal.print(`Handling connection for ${listener.port}`);
        void forward(context, pod, remote, connection).catch((error: unknown) => {
          connection.destroy();
          terminal.warn(`podwright: port ${remote} of pod ${pod.metadata.name}: ${errorMessage(error)}`);
        });
      });
      listeners.push(listener);
      // A free port is chosen once, for all addresses.
      port = listener.port;
      terminal.print(`Forwarding from ${host.includes(":") ? `[${host}]` : host}:${port} -> ${remote}`);
    } catch (error) {
      problem = error;
    }
  }
  if (listeners.length === 0) throw problem;
  return listeners;
}

/** One connection with its own streams, so that a slow one delays no other. */
async function forward(context: CommandContext, pod: Pod, port: number, connection: Socket): Promise<void> {
  const { clock } = context;
  const { session, head } = await askForStreams(context, remotePath("portForward", pod), "portforward.k8s.io");
  let problem = "";
  const headers = { port: String(port), requestID: "0" };
  const errors = session.open({ ...headers, streamType: "error" }, (bytes) => {
    if (problem.length < 4096) problem += Buffer.from(bytes).toString("utf8");
  });
  errors.end();
  const data = session.open({ ...headers, streamType: "data" }, async (bytes) => {
    if (connection.destroyed || connection.write(bytes)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    connection.once("drain", resolve).once("close", resolve);
    await promise;
    connection.off("drain", resolve).off("close", resolve);
  });
  const close = (): void => session.close();
  let hasEnded = false;
  void data.ended.then(() => {
    hasEnded = true;
    connection.end();
  });
  connection.once("close", () => {
    if (!hasEnded) return close();
    const patience = clock.timer("the runtime's response for a port", lastWordMs, close);
    void errors.ended.then(() => {
      patience[Symbol.dispose]();
      close();
    });
  });
  void errors.ended.then(() => problem !== "" && close());
  void (async () => {
    for await (const chunk of connection) await data.write(chunk as Uint8Array);
    data.end();
  })().catch(() => {});
  await session.run(head);
  connection.end();
  if (problem !== "") throw new Error(problem);
}
