"""The archive NEODyS-2: its files, fetched politely and checked."""
