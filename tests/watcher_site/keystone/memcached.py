"""A server on loopback with the two commands of memcached that a cache of tokens sends: get and set."""

from socketserver import StreamRequestHandler, ThreadingTCPServer


class Memcached(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), MemcachedConnection)
        self.values: dict[bytes, tuple[bytes, bytes]] = {}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class MemcachedConnection(StreamRequestHandler):
    server: Memcached

    def handle(self) -> None:
        while words := self.rfile.readline().split():
            if words[0] == b"set":
                value = self.rfile.read(int(words[4]) + 2)[:-2]
                self.server.values[words[1]] = (words[2], value)
                self.wfile.write(b"STORED\r\n")
            elif found := self.server.values.get(words[1]):
                flags, value = found
                self.wfile.write(b"VALUE %b %b %d\r\n%b\r\nEND\r\n" % (words[1], flags, len(value), value))
            else:
                self.wfile.write(b"END\r\n")
