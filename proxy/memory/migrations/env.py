"""Alembic's entry: runs the migrations on the connection that the database hands over."""

from alembic import context

from proxy.memory.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=context.config.attributes["version_table"],
)
context.run_migrations()
