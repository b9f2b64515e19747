// <sys/socket.h>, <sys/un.h>
export const familyUnix = 1;
export const closeOnExec = 0o2000000;
export const nonBlocking = 0o4000;

const pathBytes = 108;

/**
 * A Unix socket's address for the kernel (`struct sockaddr_un`), without padding.
 * @param name a path, or `@` and a name in the abstract namespace (unix(7))
 * @throws Error for an empty name, or one too long for the kernel
 */
export function unixAddress(name: string): Buffer {
  const text = Buffer.from(name.startsWith("@") ? `\0${name.slice(1)}` : `${name}\0`);
  if (name === "" || text.length > pathBytes) throw new Error(`not the name of a Unix socket: ${JSON.stringify(name)}`);
  const address = Buffer.alloc(2 + text.length);
  new Uint16Array(address.buffer, address.byteOffset, 1)[0] = familyUnix;
  text.copy(address, 2);
  return address;
}
