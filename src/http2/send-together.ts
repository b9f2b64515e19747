/** The used part of a socket. */
interface Corkable {
  /** False once it is being closed. */
  readonly writable: boolean;
  readonly writableCorked: number;
  cork(): void;
  uncork(): void;
  write(bytes: Uint8Array): void;
}

/** Sends what one turn of the event loop gives in one piece: the requests of a loop cost one system call. */
export function sendTogether(socket: Corkable): (bytes: Uint8Array) => void {
  return (bytes) => {
    if (!socket.writable) return;
    if (socket.writableCorked === 0) {
      socket.cork();
      void Promise.resolve().then(() => socket.uncork());
    }
    socket.write(bytes);
  };
}
