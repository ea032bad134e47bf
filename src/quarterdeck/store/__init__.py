"""The cockpit's state without a screen: replicas, chats, queue, connection, outbox."""
