import type { Socket } from "node:net";
import type { Pod } from "../api/pod.ts";
import { onAbort } from "../base/abort.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { errnoOf } from "../linux/file-error.ts";
import { type Listener, listenTcp } from "../linux/streams/stream-client.ts";
import type { CommandContext } from "./context.ts";
import { printWarning } from "./error-output.ts";
import { Interrupts } from "./interrupts.ts";
import { askForStreams } from "./remote-streams.ts";
import { remotePath, remotePod } from "./remote-target.ts";

export interface PortForwardOptions {
  /** Addresses of this machine, comma-separated; `localhost` means the loopback addresses that it has. */
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
  const addresses = listenAddresses(address);
  using interrupts = new Interrupts(process, terminal.closed);
  const listeners: Listener[] = [];
  try {
    for (const port of wanted) listeners.push(...(await listen(context, pod, port, addresses)));
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

/** An address of this machine. */
interface ListenAddress {
  readonly host: string;
  /** Asked for by itself; the addresses of `localhost` stand in for each other. */
  readonly isRequired: boolean;
}

/** Each address once, as kubectl has it: one that is also given by itself is required. */
export function listenAddresses(text: string): ListenAddress[] {
  const given = text.split(",");
  const hosts = given.flatMap((host) => (host === "localhost" ? ["127.0.0.1", "::1"] : [host]));
  return [...new Set(hosts)].map((host) => ({ host, isRequired: given.includes(host) }));
}

/**
 * Listens at each address, or at none: all that are required, and one of the others, if there are any.
 * @param port 0: a free one, chosen once for all addresses
 * @returns the listeners by their addresses, and the problem of each that is left out
 */
export async function listenAtAll<L extends Pick<Listener, "port" | "close">>(
  addresses: readonly ListenAddress[],
  port: number,
  listenAt: (host: string, port: number) => Promise<L>,
): Promise<{ readonly listeners: ReadonlyMap<string, L>; readonly problems: readonly unknown[] }> {
  const listeners = new Map<string, L>();
  const problems: unknown[] = [];
  const others = addresses.filter(({ isRequired }) => !isRequired);
  try {
    for (const { host, isRequired } of addresses) {
      const [first] = listeners.values();
      try {
        listeners.set(host, await listenAt(host, first?.port ?? port));
      } catch (error) {
        if (isRequired) throw error;
        problems.push(error);
      }
    }
    if (problems.length > 0 && problems.length === others.length) throw problems[0];
  } catch (error) {
    for (const listener of listeners.values()) listener.close();
    throw error;
  }
  return { listeners, problems };
}

async function listen(
  context: CommandContext,
  pod: Pod,
  { local, remote }: ForwardedPort,
  addresses: readonly ListenAddress[],
): Promise<Listener[]> {
  const { terminal } = context;
  const { listeners, problems } = await listenAtAll(addresses, local, async (host, port) => {
    const listener = await listenTcp(host, port, (connection) => {
      terminal.print(`Handling connection for ${listener.port}`);
      void forward(context, pod, remote, connection).catch((error: unknown) => {
        connection.destroy();
        terminal.warn(`podwright: port ${remote} of pod ${pod.metadata.name}: ${errorMessage(error)}`);
      });
    });
    return listener;
  });
  for (const [host, { port }] of listeners) {
    terminal.print(`Forwarding from ${host.includes(":") ? `[${host}]` : host}:${port} -> ${remote}`);
  }
  // Many machines have no ::1. Where it is taken, another program answers at that name.
  for (const problem of problems) {
    if (!isAddressMissing(problem)) printWarning(terminal, new Error(errorMessage(problem)));
  }
  return [...listeners.values()];
}

function isAddressMissing(error: unknown): boolean {
  const errno = error instanceof PodwrightError ? errnoOf(error.cause) : undefined;
  return errno === "EADDRNOTAVAIL" || errno === "EAFNOSUPPORT";
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
