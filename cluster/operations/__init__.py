"""Operations on profiles, policies, servers and marks, and the synchronization with the cloud."""
