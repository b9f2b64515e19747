import { ExitCode, PodwrightError } from "../base/errors.ts";
import { bindService } from "../grpc/client.ts";
import { Connection, type ConnectionChange } from "../grpc/connection.ts";
import type { Clock } from "../ports/clock.ts";
import { type Cri, CriError } from "../ports/cri.ts";
import { ImageService, RuntimeService } from "../ports/gen/runtime/v1/api_pb.js";
import type { RpcError } from "../ports/rpc.ts";

/** The longest path that a Unix socket can have: `sun_path` without its final zero byte (unix(7)). */
const maxSocketPathBytes = 107;

export interface CriClientOptions {
  /** Where ImageService is served, when it is not where RuntimeService is (`imageServiceEndpoint`). */
  readonly imageEndpoint?: string;
  /** Called when the connection to the runtime opened and when it was lost. */
  readonly onConnectionChange?: (endpoint: string, change: ConnectionChange) => void;
}

/**
 * A client of a container runtime over gRPC. Nothing is opened before the first call; dispose of it to close the
 * connections. Calls while the runtime is away reject at once with `Unavailable`; the first one after it is back works.
 * @param endpoint `unix:///path` or `/path`
 * @throws PodwrightError (bad input) for any other endpoint
 */
export function connectCri(endpoint: string, clock: Clock, options: CriClientOptions = {}): Cri & Disposable {
  const path = socketPath(endpoint);
  const imagePath = socketPath(options.imageEndpoint ?? endpoint);
  const connect = (socket: string): Connection =>
    new Connection(clock, socket, "runtime", (change) => options.onConnectionChange?.(`unix://${socket}`, change));
  const runtimeConnection = connect(path);
  const imageConnection = imagePath === path ? runtimeConnection : connect(imagePath);
  return {
    runtime: bindService(RuntimeService, runtimeConnection, criError),
    images: bindService(ImageService, imageConnection, criError),
    [Symbol.dispose]() {
      runtimeConnection[Symbol.dispose]();
      imageConnection[Symbol.dispose]();
    },
  };
}

function criError(error: RpcError, method: string): CriError {
  return new CriError(error.code, method, error.message, { cause: error });
}

/** The socket's path of a CRI endpoint. */
function socketPath(endpoint: string): string {
  const path = endpoint.startsWith("unix://") ? endpoint.slice("unix://".length) : endpoint;
  if (!path.startsWith("/")) {
    throw new PodwrightError(ExitCode.badInput, `cannot use "${endpoint}" as the container runtime endpoint`, {
      remedy: "use a Unix socket, e.g. unix:///run/containerd/containerd.sock",
    });
  }
  if (Buffer.byteLength(path) > maxSocketPathBytes || path.includes("\0")) {
    throw new PodwrightError(
      ExitCode.badInput,
      `the container runtime endpoint "${endpoint}" is not a valid socket path`,
      {
        remedy: `use an absolute path of at most ${maxSocketPathBytes} bytes`,
      },
    );
  }
  return path;
}
